#pragma once

namespace troupe::learner::transparent {

/// From now on files that this process opens for writing are diverted (see DivertedFiles), if
/// asked.
void divert_writes(bool asked);

} // namespace troupe::learner::transparent
