#pragma once
// What every backend must do: each operation gives the result of a plain loop, and every mistake is
// named on every rank. Include tests/doctest_torch.hpp first.

#include <latch>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "tests/collectives/ranks.hpp"

namespace troupe::collectives {

/// Small integers of both signs, different on every rank.
inline at::Tensor input_of(int rank, at::IntArrayRef shape, at::ScalarType type) {
  std::int64_t count = 1;
  for (const auto n : shape)
    count *= n;
  return torch::arange(count, at::kLong)
      .mul(7)
      .add(3 * rank + 1)
      .remainder(11)
      .sub(5)
      .reshape(shape)
      .to(type);
}

inline at::Tensor loop_over_ranks(int size, at::IntArrayRef shape, at::ScalarType type,
                                  ReduceOp op) {
  const auto wide = type == at::kLong ? at::kLong : at::kDouble;
  auto result = input_of(0, shape, type).to(wide);
  for (int rank = 1; rank < size; ++rank) {
    const auto next = input_of(rank, shape, type).to(wide);
    result = op == ReduceOp::product ? result * next
             : op == ReduceOp::min   ? torch::minimum(result, next)
             : op == ReduceOp::max   ? torch::maximum(result, next)
                                     : result + next;
  }
  return (op == ReduceOp::mean ? result / size : result).to(type);
}

inline void check_near(const at::Tensor& result, const at::Tensor& expected) {
  REQUIRE(bool(result.sizes() == expected.sizes()));
  REQUIRE(bool(result.scalar_type() == expected.scalar_type()));
  const double tolerance = result.scalar_type() == at::kBFloat16 ? 0.02 : 1e-6;
  CHECK(torch::allclose(result.to(at::kDouble), expected.to(at::kDouble), tolerance, tolerance));
}

inline void check_operations(Means means, int size, at::ScalarType type, at::IntArrayRef shape) {
  at::set_num_threads(1);
  CAPTURE(size);
  CAPTURE(at::toString(type));
  CAPTURE(shape);
  const auto ranks = static_cast<std::size_t>(size);
  std::vector<ReduceOp> ops{ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::product};
  if (type != at::kLong)
    ops.push_back(ReduceOp::mean);
  std::vector<std::vector<at::Tensor>> reduced(ranks), scattered(ranks), gathered(ranks),
      exchanged(ranks);
  std::vector<at::Tensor> sent(ranks);
  auto rows = shape.vec();
  rows.insert(rows.begin(), 2 * size);
  const auto errors = on_ranks(means, size, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const auto input = input_of(communicator.rank(), shape, type);
    for (const auto op : ops) {
      reduced[rank].push_back(input.clone());
      communicator.all_reduce(reduced[rank].back(), op);
      scattered[rank].push_back(
          communicator.reduce_scatter(input_of(communicator.rank(), rows, type), op));
    }
    gathered[rank] = communicator.all_gather(input);
    sent[rank] = input.clone();
    communicator.broadcast(sent[rank], size - 1);
    std::vector<at::Tensor> out;
    for (int to = 0; to < size; ++to)
      out.push_back(input_of(10 * communicator.rank() + to, shape, type));
    exchanged[rank] = communicator.all_to_all(out);
    communicator.barrier();
  });
  REQUIRE(errors == std::vector<std::string>(ranks));
  const auto here = ranks_here(means, size);
  const auto first = static_cast<std::size_t>(here.front());
  for (const int rank : here) {
    const auto i = static_cast<std::size_t>(rank);
    for (std::size_t k = 0; k < ops.size(); ++k) {
      check_near(reduced[i][k], loop_over_ranks(size, shape, type, ops[k]));
      CHECK(torch::equal(reduced[i][k], reduced[first][k]));
      check_near(scattered[i][k], loop_over_ranks(size, rows, type, ops[k]).narrow(0, 2 * rank, 2));
    }
    CHECK(torch::equal(sent[i], input_of(size - 1, shape, type)));
    for (int other = 0; other < size; ++other) {
      const auto j = static_cast<std::size_t>(other);
      CHECK(torch::equal(gathered[i][j], input_of(other, shape, type)));
      CHECK(torch::equal(exchanged[i][j], input_of(10 * other + rank, shape, type)));
    }
  }
}

/// What only c10d has: operations with a root that sends or receives alone, and lists of tensors in
/// one call.
inline void check_c10d(Means means, int size) {
  CAPTURE(size);
  const auto errors = on_ranks(means, size, [size](Communicator& communicator) {
    const int rank = communicator.rank(), root = size - 1;
    const auto group = communicator.process_group();
    const auto check = [](bool held, const std::string& what) {
      if (!held)
        throw std::runtime_error("wrong: " + what);
    };
    const auto input = [](int of) { return input_of(of, {5, 3}, at::kDouble); };
    const auto sum = loop_over_ranks(size, {5, 3}, at::kDouble, ReduceOp::sum);
    c10d::ReduceOptions reduce;
    reduce.rootRank = root;
    std::vector<at::Tensor> mine{input(rank)};
    group->reduce(mine, reduce)->wait();
    check(rank != root || torch::equal(mine[0], sum), "reduce");

    c10d::GatherOptions gather;
    gather.rootRank = root;
    std::vector<std::vector<at::Tensor>> all(rank == root ? 1 : 0);
    if (rank == root)
      for (int i = 0; i < size; ++i)
        all[0].push_back(torch::zeros({5, 3}, at::kDouble));
    mine = {input(rank)};
    group->gather(all, mine, gather)->wait();
    for (int i = 0; rank == root && i < size; ++i)
      check(torch::equal(all[0][static_cast<std::size_t>(i)], input(i)), "gather");

    c10d::ScatterOptions scatter;
    scatter.rootRank = root;
    mine = {torch::zeros({5, 3}, at::kDouble)};
    group->scatter(mine, all, scatter)->wait(); // back to where it came from
    check(torch::equal(mine[0], input(rank)), "scatter");

    std::vector<at::Tensor> list{input(rank), input(rank).narrow(0, 1, 2).clone()};
    group->allreduce_coalesced(list)->wait();
    check(torch::equal(list[0], sum) && torch::equal(list[1], sum.narrow(0, 1, 2)),
          "allreduce_coalesced");
  });
  CHECK(errors == std::vector<std::string>(static_cast<std::size_t>(size)));
}

/// Rank 1 calls `odd`, the others call `common`. All must throw a message that contains each of
/// `parts`, and throw again at the next call.
inline void check_named(Means means, int size, const Body& common, const Body& odd,
                        const std::vector<std::string>& parts) {
  std::vector<std::string> second(static_cast<std::size_t>(size));
  const auto first = on_ranks(means, size, [&](Communicator& communicator) {
    try {
      communicator.barrier(); // #0
      communicator.rank() == 1 ? odd(communicator) : common(communicator);
    } catch (const CollectiveError&) {
      try {
        communicator.barrier();
      } catch (const CollectiveError& again) {
        second[static_cast<std::size_t>(communicator.rank())] = again.what();
      }
      throw;
    }
  });
  for (const int here : ranks_here(means, size)) {
    const auto rank = static_cast<std::size_t>(here);
    for (const auto& part : parts) {
      CAPTURE(first[rank]);
      CHECK(has(first[rank], part));
    }
    CHECK(second[rank] == first[rank]);
  }
}

inline void check_mismatches(Means means) {
  const auto reduce = [](at::ScalarType type, std::vector<std::int64_t> shape, ReduceOp op) {
    return [=](Communicator& communicator) {
      auto tensor = torch::ones(shape, type);
      communicator.all_reduce(tensor, op);
    };
  };
  const auto send = [](int root) {
    return [=](Communicator& communicator) {
      auto tensor = torch::ones({3});
      communicator.broadcast(tensor, root);
    };
  };
  SUBCASE("another operation") {
    check_named(means, 2, reduce(at::kFloat, {3, 4}, ReduceOp::sum),
                reduce(at::kFloat, {3, 4}, ReduceOp::mean),
                {"all_reduce #1: rank 0 sum float32 [3, 4], rank 1 mean float32 [3, 4]"});
  }
  SUBCASE("another shape") {
    check_named(means, 2, reduce(at::kFloat, {3, 4}, ReduceOp::sum),
                reduce(at::kFloat, {3}, ReduceOp::sum),
                {"all_reduce #1: rank 0 sum float32 [3, 4], rank 1 sum float32 [3]"});
  }
  SUBCASE("another shape with as many elements") {
    check_named(means, 2, reduce(at::kFloat, {3, 4}, ReduceOp::sum),
                reduce(at::kFloat, {4, 3}, ReduceOp::sum), {"[3, 4]", "[4, 3]"});
  }
  SUBCASE("another type") {
    check_named(means, 3, reduce(at::kFloat, {3}, ReduceOp::sum),
                reduce(at::kLong, {3}, ReduceOp::sum),
                {"all_reduce #1: ranks 0, 2 sum float32 [3], rank 1 sum int64 [3]"});
  }
  SUBCASE("another root") {
    check_named(means, 2, send(0), send(1),
                {"broadcast #1: rank 0 root 0 float32 [3], rank 1 root 1 float32 [3]"});
  }
  SUBCASE("another collective") {
    check_named(means, 3, send(0), [](Communicator& communicator) { communicator.barrier(); },
                {"collective #1: ranks 0, 2 broadcast root 0 float32 [3], rank 1 barrier"});
  }
  SUBCASE("another order") {
    const auto sum = reduce(at::kFloat, {3}, ReduceOp::sum);
    const auto barrier = [](Communicator& communicator) { communicator.barrier(); };
    check_named(
        means, 2,
        [=](Communicator& communicator) {
          sum(communicator);
          barrier(communicator);
        },
        [=](Communicator& communicator) {
          barrier(communicator);
          sum(communicator);
        },
        {"collective #1: rank 0 all_reduce sum float32 [3], rank 1 barrier"});
  }
  SUBCASE("an exchange into an output of another size") {
    const auto exchange = [](std::int64_t rows) {
      return [=](Communicator& communicator) {
        auto input = torch::ones({2 * communicator.size()});
        auto output = torch::zeros({rows * communicator.size()});
        std::vector<std::int64_t> equal_in, equal_out;
        communicator.process_group()->alltoall_base(output, input, equal_out, equal_in)->wait();
      };
    };
    check_named(means, 2, exchange(2), exchange(4),
                {"rank 1 called all_to_all wrongly: the input "
                 "has 8 bytes for this rank itself, the output 16;"});
  }
  SUBCASE("a reduction that only all_reduce supports") {
    check_named(means, 2, reduce(at::kFloat, {2}, ReduceOp::sum),
                [](Communicator& communicator) {
                  communicator.reduce_scatter(torch::ones({2}), ReduceOp::first);
                },
                {"rank 1 called reduce_scatter wrongly: reduction "});
  }
  SUBCASE("a reduction of LibTorch that no backend supports") {
    check_named(means, 2, reduce(at::kFloat, {2}, ReduceOp::sum),
                [](Communicator& communicator) {
                  std::vector<at::Tensor> tensors{torch::ones({2})};
                  c10d::AllreduceOptions options;
                  options.reduceOp = c10d::ReduceOp::BAND;
                  communicator.process_group()->allreduce(tensors, options)->wait();
                },
                {"rank 1 called all_reduce wrongly: reduction "});
  }
  SUBCASE("a call that is wrong on its own") {
    check_named(means, 2, reduce(at::kLong, {3}, ReduceOp::sum),
                reduce(at::kLong, {3}, ReduceOp::mean), {"rank 1", "mean of int64"});
  }
}

/// Rank 1 calls only after rank 0 has given up.
inline void check_late(Means means) {
  std::latch given_up(1);
  CommunicatorOptions options;
  options.timeout = std::chrono::milliseconds(100);
  const auto errors = on_ranks(
      means, 2,
      [&](Communicator& communicator) {
        auto tensor = torch::ones({3});
        if (communicator.rank() == 1)
          given_up.wait();
        try {
          communicator.all_reduce(tensor, ReduceOp::sum);
        } catch (const CollectiveError&) {
          if (communicator.rank() == 0)
            given_up.count_down();
          throw;
        }
      },
      options);
  CAPTURE(errors[0]);
  CHECK(has(errors[0], "all_reduce #0: rank 1 did not arrive within 0.1 s"));
  CHECK(has(errors[0], "rank 0 all_reduce sum float32 [3]"));
  CHECK(errors[1] == errors[0]);
}

inline void check_abort(Means means) {
  check_named(
      means, 3, [](Communicator& communicator) { communicator.barrier(); },
      [](Communicator& communicator) {
        communicator.abort("the disk is full");
        communicator.barrier();
      },
      {"rank 1 aborted: the disk is full"});
}

} // namespace troupe::collectives
