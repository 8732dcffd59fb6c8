#include <doctest/doctest.h>
#include <stdexcept>

#include <zlib.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <new>
#include <numeric>

#include "env/npz.hpp"
#include "env/processes/forked.hpp"
