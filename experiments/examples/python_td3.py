"""TD3 (Fujimoto, van Hoof and Meger 2018) as an agent in Python: the actors and replay run in C++, the update in PyTorch.

    python python_td3.py Pendulum-v1 10000
"""

import copy
import sys

import torch
import troupe


@troupe.agent(batch_size=256, policy_layers=(256, 256), noise=0.1, metrics=("critic_loss", "q_mean"))
class Td3:
    def __init__(self, env, *, learning_rate=3e-4, tau=0.005, target_noise=0.2, noise_clip=0.5, period=2):
        self.policy = troupe.agents.mlp(env.observation_size, env.policy_layers, env.outputs)
        critics = [troupe.agents.mlp(env.observation_size + env.action_size, env.policy_layers, 1) for _ in range(2)]
        self.critics = torch.nn.ModuleList(critics)
        self.policy_target, self.critics_target = copy.deepcopy(self.policy), copy.deepcopy(self.critics)
        self.policy_optimizer = torch.optim.Adam(self.policy.parameters(), learning_rate)
        self.critic_optimizer = torch.optim.Adam(self.critics.parameters(), learning_rate)
        self.tau, self.target_noise, self.noise_clip, self.period = tau, target_noise, noise_clip, period
        self.updates, self.q_mean = 0, 0.0

    def update(self, batch):
        state, action = batch["observation"], batch["action"]
        with torch.no_grad():
            noise = (torch.randn_like(action) * self.target_noise).clamp(-self.noise_clip, self.noise_clip)
            next_action = (self.policy_target(batch["next_observation"]).tanh() + noise).clamp(-1, 1)
            after = torch.cat([batch["next_observation"], next_action], 1)
            value = torch.minimum(*(critic(after) for critic in self.critics_target)).squeeze(1)
            target = batch["reward"] + batch["discount"] * value
        before = torch.cat([state, action], 1)
        loss = sum((critic(before).squeeze(1) - target).square().mean() for critic in self.critics)
        self.critic_optimizer.zero_grad()
        loss.backward()
        self.critic_optimizer.step()
        self.updates += 1
        if self.updates % self.period == 0:
            self.learn_policy(state)
        return {"critic_loss": loss, "q_mean": self.q_mean}

    def learn_policy(self, state):
        value = self.critics[0](torch.cat([state, self.policy(state).tanh()], 1)).mean()
        self.policy_optimizer.zero_grad()
        (-value).backward()
        self.policy_optimizer.step()
        self.q_mean = value.item()
        with torch.no_grad():
            for online, target in ((self.policy, self.policy_target), (self.critics, self.critics_target)):
                for new, old in zip(online.parameters(), target.parameters()):
                    old.lerp_(new, self.tau)


def experiment(task, steps):
    """Returns an experiment with one update per step, like the C++ TD3 in configs/gym."""
    return {
        "name": "python_td3",
        "environment": {"task": task},
        "replay": {"samples_per_insert": 256, "minimum_items": 1000, "n_step": 1},
        "actors": {"environment": 1, "environments_per_actor": 1, "random_steps": 1000},
        "stop": {"environment_steps": steps},
    }


if __name__ == "__main__":
    task, steps = sys.argv[1:] or ("Pendulum-v1", "10000")
    run = troupe.train(experiment(task, int(steps)), agent=Td3)
    print(run, run.metrics("final")["evaluation_return"] if "evaluation_return" in run.metrics("final") else run.metrics("final"))
