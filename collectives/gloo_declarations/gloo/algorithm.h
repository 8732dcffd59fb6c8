#pragma once
// See gloo/context.h.
#include <gloo/context.h>
