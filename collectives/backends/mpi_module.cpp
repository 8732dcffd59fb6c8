// The module libtroupe_mpi.so: MPI's nonblocking collectives behind one exported table.
#include "collectives/backends/mpi_module.hpp"

#include <climits>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <mpi.h>

namespace {

using troupe::collectives::MpiGroup;
using troupe::collectives::MpiModule;
using troupe::collectives::ReduceOp;

void require(int code, const char* what) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(what) + ": "
                           + std::string(text, static_cast<std::size_t>(length)));
}

int count_of(std::size_t count) {
  if (count > INT_MAX)
    throw std::runtime_error(std::to_string(count)
                             + " elements or bytes are more than the 2147483647 of an MPI call; "
                               "split the tensor");
  return static_cast<int>(count);
}

MPI_Datatype datatype_of(c10::ScalarType type) {
  switch (type) {
  case c10::ScalarType::Float:
    return MPI_FLOAT;
  case c10::ScalarType::Double:
    return MPI_DOUBLE;
  case c10::ScalarType::Long:
    return MPI_INT64_T;
  case c10::ScalarType::Int:
    return MPI_INT32_T;
  case c10::ScalarType::Short:
    return MPI_INT16_T;
  case c10::ScalarType::Char:
    return MPI_INT8_T;
  case c10::ScalarType::Byte:
    return MPI_UINT8_T;
  default:
    throw std::runtime_error("MPI has no arithmetic for type "
                             + std::to_string(static_cast<int>(type)));
  }
}

/// Returns the smaller (larger) of two numbers, or NaN if one of them is: MPI leaves this case
/// undefined.
template <class T, bool kLess>
void pick(const void* in, void* inout, int count) {
  const T* a = static_cast<const T*>(in);
  T* b = static_cast<T*>(inout);
  for (int i = 0; i < count; ++i)
    if (a[i] != a[i] || (kLess ? a[i] < b[i] : a[i] > b[i]))
      b[i] = a[i];
}

template <bool kLess>
void pick_floating(void* in, void* inout, int* count, MPI_Datatype* type) {
  *type == MPI_FLOAT ? pick<float, kLess>(in, inout, *count)
                     : pick<double, kLess>(in, inout, *count);
}

/// State for the lifetime of MPI in this process, which lasts until exit.
struct Process {
  MPI_Op min = MPI_OP_NULL, max = MPI_OP_NULL; // of floating-point numbers
  bool ours = false;                           // this module initialized MPI and finalizes it
  std::vector<std::shared_ptr<void>> abandoned;
};

Process& process() {
  static auto* const kept = new Process; // MPI may write into abandoned memory until the end
  return *kept;
}

void finalise() {
  int over = 0;
  MPI_Finalized(&over);
  if (over == 0 && process().abandoned.empty())
    MPI_Finalize();
}

void start() {
  int begun = 0, over = 0, level = 0;
  MPI_Finalized(&over);
  if (over != 0)
    throw std::runtime_error(
        "the program has called MPI_Finalize; make communicators before that call");
  MPI_Initialized(&begun);
  if (begun == 0) {
    require(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
    process().ours = true;
    std::atexit(finalise);
  }
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_SERIALIZED)
    throw std::runtime_error(
        "MPI runs without threads (level " + std::to_string(level)
        + "); start it by calling MPI_Init_thread with MPI_THREAD_SERIALIZED or "
          "MPI_THREAD_MULTIPLE, or leave it to this library");
  if (process().min == MPI_OP_NULL) {
    require(MPI_Op_create(pick_floating<true>, 1, &process().min), "MPI_Op_create");
    require(MPI_Op_create(pick_floating<false>, 1, &process().max), "MPI_Op_create");
  }
}

MPI_Op op_of(ReduceOp op, c10::ScalarType type) {
  const bool floating = type == c10::ScalarType::Float || type == c10::ScalarType::Double;
  switch (op) {
  case ReduceOp::sum:
    return MPI_SUM;
  case ReduceOp::product:
    return MPI_PROD;
  case ReduceOp::min:
    return floating ? process().min : MPI_MIN;
  case ReduceOp::max:
    return floating ? process().max : MPI_MAX;
  default:
    throw std::runtime_error("MPI has no operation " + std::to_string(static_cast<int>(op)));
  }
}

class Group : public MpiGroup {
public:
  Group() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    require(MPI_Comm_idup(MPI_COMM_WORLD, &group_, &request_), "MPI_Comm_idup");
  }
  ~Group() override {
    // MPI_Comm_free is collective, but ranks end in different orders, so MPI_Finalize frees it.
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(const void* in, void* out, std::size_t count, c10::ScalarType type,
                  ReduceOp op) override {
    require(MPI_Iallreduce(in == out ? MPI_IN_PLACE : in, out, count_of(count), datatype_of(type),
                           op_of(op, type), group_, &request_),
            "MPI_Iallreduce");
  }
  void reduce_scatter(const void* in, void* out, std::size_t count, c10::ScalarType type,
                      ReduceOp op) override {
    require(MPI_Ireduce_scatter_block(in, out, count_of(count), datatype_of(type), op_of(op, type),
                                      group_, &request_),
            "MPI_Ireduce_scatter_block");
  }
  void broadcast(void* data, std::size_t bytes, int root) override {
    require(MPI_Ibcast(data, count_of(bytes), MPI_BYTE, root, group_, &request_), "MPI_Ibcast");
  }
  void all_gather(const void* in, void* out, std::size_t bytes) override {
    const int count = count_of(bytes);
    require(MPI_Iallgather(in, count, MPI_BYTE, out, count, MPI_BYTE, group_, &request_),
            "MPI_Iallgather");
  }
  void all_to_all(const void* in, std::span<const std::size_t> in_bytes, void* out,
                  std::span<const std::size_t> out_bytes) override {
    fill(in_bytes, in_counts_, in_begins_); // MPI reads these until the collective is complete
    fill(out_bytes, out_counts_, out_begins_);
    require(MPI_Ialltoallv(in, in_counts_.data(), in_begins_.data(), MPI_BYTE, out,
                           out_counts_.data(), out_begins_.data(), MPI_BYTE, group_, &request_),
            "MPI_Ialltoallv");
  }
  bool done() override {
    int flag = 0;
    require(MPI_Test(&request_, &flag, MPI_STATUS_IGNORE), "MPI_Test");
    if (flag != 0 && fresh_) {
      MPI_Comm_set_errhandler(group_, MPI_ERRORS_RETURN);
      fresh_ = false;
    }
    return flag != 0;
  }
  void abandon(std::shared_ptr<void> memory) override {
    process().abandoned.push_back(std::move(memory));
  }

private:
  static void fill(std::span<const std::size_t> bytes, std::vector<int>& counts,
                   std::vector<int>& begins) {
    counts.clear();
    begins.clear();
    std::size_t begin = 0;
    for (const auto n : bytes) {
      counts.push_back(count_of(n));
      begins.push_back(count_of(begin));
      begin += n;
    }
  }

  MPI_Comm group_ = MPI_COMM_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;
  int rank_ = 0, size_ = 0;
  bool fresh_ = true; // the group is still being created
  std::vector<int> in_counts_, in_begins_, out_counts_, out_begins_;
};

std::unique_ptr<MpiGroup> make() {
  start();
  return std::make_unique<Group>();
}

} // namespace

extern "C" __attribute__((visibility("default")))
const MpiModule troupe_mpi_module{MpiModule::kVersion, make};
