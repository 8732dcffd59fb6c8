// A member of an elastic group for elastic_process_test: trains a toy model and says in the
// rendezvous how it ended. Arguments: host port name; name is a rank of the founders, or "joins".
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "collectives/elastic_group.hpp"
#include "collectives/hierarchical_backend.hpp"
#include "collectives/rendezvous.hpp"

namespace {

using namespace troupe::collectives;
using std::chrono::milliseconds;

struct Task {
  int size = 0;
  int steps = 0;
  std::int64_t elements = 0;
  int min_size = 1;
  std::string backend;
};

Task read_task(c10d::Store& store) {
  Task task;
  std::istringstream text(store.get_to_str("task"));
  if (!(text >> task.size >> task.steps >> task.elements >> task.min_size >> task.backend))
    throw std::runtime_error("no task in the store");
  return task;
}

/// Two hosts, where the backend is of two levels: even and odd ranks.
StoreFactory factory_of(const std::string& backend, const std::string& name) {
  if (backend == "gloo")
    return gloo_over_store();
  if (backend == "shared_memory")
    return shared_memory_over_store();
  return hierarchical_over_store(shared_memory_over_store(), gloo_over_store(),
                                 std::atoi(name.c_str()) % 2 == 0 ? "even" : "odd");
}

/// All take the state of the most advanced.
std::int64_t take_state(ElasticGroup& group, at::Tensor& parameters, std::int64_t step) {
  auto& communicator = group.communicator();
  const int root = most_advanced_rank(communicator, step);
  auto at = torch::full({1}, step, at::kLong);
  communicator.broadcast(at, root);
  communicator.broadcast(parameters, root);
  return at.item<std::int64_t>();
}

/// A gradient that depends on the step and, slightly, on the rank.
at::Tensor gradient_of(const at::Tensor& parameters, int rank, std::int64_t step) {
  return parameters * 0.1 + torch::arange(parameters.numel()).remainder(7).to(at::kFloat)
         + static_cast<double>(step) + 0.01 * rank;
}

std::string train(ElasticGroup& group, const Task& task, c10d::Store& store,
                  const std::string& name, bool newcomer) {
  auto parameters = torch::zeros({task.elements});
  std::int64_t step = newcomer ? -1 : 0;
  bool fresh = newcomer;
  std::string log;
  while (step < task.steps) {
    try {
      if (fresh) {
        step = take_state(group, parameters, step);
        fresh = false;
      }
      if (group.admit_newcomers()) {
        fresh = true;
        continue;
      }
      store.set("at/" + name + "/" + std::to_string(step), std::string("here"));
      auto gradient = gradient_of(parameters, group.communicator().rank(), step);
      group.communicator().all_reduce(gradient, ReduceOp::mean);
      parameters -= 0.01 * gradient;
      ++step;
    } catch (const LeftOut&) {
      throw;
    } catch (const CollectiveError& error) {
      const auto begin = std::chrono::steady_clock::now();
      group.regroup(error.what());
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      log += " left:" + std::to_string(group.membership().left.size()) + " took "
             + std::to_string(took.count()) + " s";
      fresh = true;
    }
  }
  std::uint64_t bits = 14695981039346656037ULL;
  const auto* bytes = static_cast<const unsigned char*>(parameters.const_data_ptr());
  for (std::size_t i = 0; i < parameters.nbytes(); ++i)
    bits = (bits ^ bytes[i]) * 1099511628211ULL;
  return "done " + std::to_string(step) + " size " + std::to_string(group.communicator().size())
         + " bits " + std::to_string(bits) + log;
}

} // namespace

int main(int count, char** arguments) {
  if (count != 4)
    return 2;
  at::set_num_threads(1);
  CommunicatorOptions options;
  options.timeout = milliseconds(2000);
  options.connect_timeout = milliseconds(20'000);
  const auto connect = [&] {
    return connect_rendezvous(arguments[1], std::atoi(arguments[2]), options);
  };
  const auto store = connect();
  const std::string name = arguments[3];
  std::string result;
  try {
    const auto task = read_task(*store);
    ElasticGroup::Options elastic;
    elastic.factory = factory_of(task.backend, name);
    elastic.communicator = options;
    elastic.min_size = task.min_size;
    elastic.regroup_deadline = milliseconds(8000);
    const bool newcomer = name == "joins";
    const auto group =
        newcomer ? ElasticGroup::join(connect(), "toy", elastic, milliseconds(60'000))
                 : std::make_unique<ElasticGroup>(connect(), "toy", std::atoi(name.c_str()),
                                                  task.size, elastic);
    store->set("in/" + name, std::string("here"));
    result = train(*group, task, *store, name, newcomer);
  } catch (const LeftOut& error) {
    result = std::string("left out: ") + error.what();
  } catch (const std::exception& error) {
    result = std::string("error: ") + error.what();
  }
  try {
    store->set("result/" + name, result);
  } catch (const std::exception&) {
    std::fprintf(stderr, "%s\n", result.c_str()); // the rendezvous is gone
    return 3;
  }
  return 0;
}
