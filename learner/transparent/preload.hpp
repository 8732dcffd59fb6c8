#pragma once

namespace troupe::learner::transparent {

/// If `asked`, diverts all files that this process opens for writing from now on (see
/// DivertedFiles).
void divert_writes(bool asked);

} // namespace troupe::learner::transparent
