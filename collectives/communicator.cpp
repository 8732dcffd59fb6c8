#include "collectives/communicator.hpp"
