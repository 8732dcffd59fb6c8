"""Checks the README's replacements of other buffers with the real TorchRL, and as CleanRL's scripts use them. Usage: adapters_checks.py <README of troupe.replay>."""

import pathlib
import re
import sys
import unittest

import numpy as np
import torch
from tensordict import TensorDict
from torchrl.data import LazyTensorStorage, TensorDictPrioritizedReplayBuffer
from torchrl.modules import QValueActor
from torchrl.objectives import DQNLoss
from troupe.replay import Table

README = pathlib.Path(sys.argv.pop(1))
STEPS = 200


def block(words):
    """The README's block of code that contains `words`, executed."""
    found, = [block for block in re.findall(r"```python\n(.*?)```", README.read_text(), re.S) if words in block]
    scope = {"np": np, "Table": Table, "torch": torch}
    exec(found, scope)
    return scope


def steps():
    random = torch.Generator().manual_seed(1)
    return TensorDict({
        "observation": torch.randn(STEPS, 4, generator=random),
        "action": torch.nn.functional.one_hot(torch.arange(STEPS) % 2, 2),
        "next": {
            "observation": torch.randn(STEPS, 4, generator=random),
            "reward": torch.arange(STEPS, dtype=torch.float32)[:, None],
            "done": (torch.arange(STEPS) % 50 == 49)[:, None],
            "terminated": (torch.arange(STEPS) % 100 == 99)[:, None],
        },
    }, batch_size=[STEPS])


class TorchRl(unittest.TestCase):
    def test_batches_have_the_keys_and_types_of_torchrl(self):
        data = steps()
        own = block("class TensorDictBuffer")["TensorDictBuffer"](data[0], 1000)
        theirs = TensorDictPrioritizedReplayBuffer(alpha=0.6, beta=0.4, storage=LazyTensorStorage(1000), batch_size=32)
        own.extend(data)
        theirs.extend(data.clone())
        ours, wanted = own.sample(32), theirs.sample()
        self.assertEqual(set(ours.keys(True, True)) & set(wanted.keys(True, True)), set(wanted.keys(True, True)))
        for key in wanted.keys(True, True):
            self.assertEqual((ours[key].dtype, ours[key].shape), (wanted[key].dtype, wanted[key].shape), key)
        rows = ours["next", "reward"][:, 0].long()
        for key in data.keys(True, True):
            self.assertTrue(torch.equal(ours[key], data[key][rows]), key)

    def test_a_loss_of_torchrl_sets_the_priorities(self):
        data = steps()
        buffer = block("class TensorDictBuffer")["TensorDictBuffer"](data[0], 1000, alpha=1.0, beta=1.0)
        buffer.extend(data)
        torch.manual_seed(1)
        actor = QValueActor(torch.nn.Linear(4, 2), in_keys=["observation"], action_space="one-hot")
        loss = DQNLoss(actor, action_space="one-hot", delay_value=False)
        for _ in range(20):
            batch = buffer.sample(64)
            loss(batch)["loss"].backward()
            self.assertEqual(batch["td_error"].numel(), 64)
            buffer.update_tensordict_priority(batch)
        last = dict(zip(batch["index"].tolist(), batch["td_error"].flatten().tolist()))
        again = buffer.table.sample(2000)
        seen = {int(key): priority for key, priority in zip(again.keys, again.priorities)}
        both = set(last) & set(seen)
        self.assertGreater(len(both), 10)
        for key in both:
            self.assertAlmostEqual(seen[key], last[key], delta=1e-3 * max(1.0, last[key]))
        weights = buffer.sample(2000)["priority_weight"]
        self.assertEqual(weights.max(), 1)
        self.assertLess(weights.min(), 0.9)

    def test_only_the_chosen_item_is_left_when_the_others_have_no_priority(self):
        data = steps()
        buffer = block("class TensorDictBuffer")["TensorDictBuffer"](data[0], 1000)
        buffer.extend(data)
        indices = set()
        while len(indices) < STEPS:
            indices |= set(buffer.sample(256)["index"].tolist())
        index = torch.tensor(sorted(indices))
        buffer.update_priority(index, (index == index[7]).float())
        self.assertEqual(set(buffer.sample(64)["index"].tolist()), {int(index[7])})


class CleanRl(unittest.TestCase):
    def test_an_update_of_td3_as_cleanrl_writes_it(self):
        scope = block("class ReplayBuffer")
        buffer = scope["ReplayBuffer"](100, (4,), (2,), torch.from_dlpack)
        random = np.random.default_rng(1)
        for step in range(30):
            ends = np.array([step % 10 == 9, step % 7 == 6])
            infos = [{"TimeLimit.truncated": step % 20 == 19}, {}]
            buffer.add(np.full((2, 4), step), np.full((2, 4), step + 1), random.uniform(-1, 1, (2, 2)), np.array([step, step]), ends, infos)
        data = buffer.sample(64)
        self.assertEqual([tuple(tensor.shape) for tensor in (data.observations, data.actions, data.next_observations, data.rewards, data.dones)],
                         [(64, 4), (64, 2), (64, 4), (64, 1), (64, 1)])
        self.assertEqual({tensor.dtype for tensor in vars(data).values()}, {torch.float32})
        critic = torch.nn.Linear(6, 1)
        with torch.no_grad():
            target = data.rewards.flatten() + (1 - data.dones.flatten()) * 0.99 * critic(torch.cat([data.next_observations, data.actions], 1)).view(-1)
        loss = torch.nn.functional.mse_loss(critic(torch.cat([data.observations, data.actions], 1)).view(-1), target)
        loss.backward()
        self.assertTrue(torch.isfinite(critic.weight.grad).all())
        everything = buffer.sample(5000)
        ended = {(int(step), int(done)) for step, done in zip(everything.rewards, everything.dones)}
        self.assertIn((9, 1), ended)
        self.assertNotIn((19, 1), ended)  # a time limit
        self.assertIn((6, 1), ended)
        self.assertTrue((everything.next_observations - everything.observations == 1).all())


if __name__ == "__main__":
    unittest.main(verbosity=1)
