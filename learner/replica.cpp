#include "learner/replica.hpp"
