"""Trains a ResNet-18 on Fashion-MNIST with DistributedDataParallel. Plain PyTorch, under any launcher:

    torchrun  --standalone --nproc-per-node=2 train.py --checkpoint=/tmp/run1
    muster run --standalone --nproc-per-node=2 train.py --checkpoint=/tmp/run1

Started again, by hand or by the launcher after a failure, it goes on from the last checkpoint, at the image
where that was made, also with another number of workers. The same seed gives the same losses.
"""
import argparse
import contextlib
import os

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

import checkpoint
from images import FOLDER, Images
from models import MODELS


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=FOLDER, help="folder of the four files of the data set")
    parser.add_argument("--model", choices=sorted(MODELS), default="resnet18")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0, help="end after so many steps in all (0: after the epochs)")
    parser.add_argument("--images", type=int, default=0, help="train with the first N images (0: all)")
    parser.add_argument("--test-images", type=int, default=0, help="test with the first N images (0: all)")
    parser.add_argument("--batch", type=int, default=64, help="images of a step, over all workers")
    parser.add_argument("--accumulate", type=int, default=1, help="parts of a step; gradients are reduced once")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoint", default="", help="folder of the checkpoint (none: nothing is kept)")
    parser.add_argument("--checkpoint-every", type=int, default=0, help="steps between checkpoints (0: one an epoch)")
    return parser.parse_args()


class Trainer:
    """The model, its optimiser, and where it is in the data: all that a checkpoint holds."""

    def __init__(self, args):
        self.args = args
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        if args.batch % (self.world * args.accumulate):
            raise SystemExit("train.py: --batch=%d can't be shared among %d workers in %d parts" % (
                args.batch, self.world, args.accumulate))
        self.device = torch.device("cpu")
        if torch.cuda.is_available():
            self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
            torch.cuda.set_device(self.device)
        torch.manual_seed(args.seed)
        model = MODELS[args.model]().to(self.device)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
        # `taken`: images of this epoch that all workers together have seen, so that it has a meaning for any world.
        self.step, self.epoch, self.taken = 0, 0, 0
        found = checkpoint.load(args.checkpoint) if args.checkpoint else None
        if found:
            model.load_state_dict(found["model"])
            self.optimizer.load_state_dict(found["optimizer"])
            self.step, self.epoch, self.taken = found["step"], found["epoch"], found["taken"]
            self.say("goes on after step %d (epoch %d, image %d)" % (self.step, self.epoch, self.taken))
        # On a GPU DDP is told which; on a CPU there is nothing to tell. It gives all ranks rank 0's parameters.
        self.model = DistributedDataParallel(model, device_ids=[self.device] if self.device.type == "cuda" else None)

    def say(self, text):
        if self.rank == 0:
            print(text, flush=True)

    def save(self):
        if self.rank == 0:
            checkpoint.save(self.args.checkpoint, {
                "model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict(),
                "step": self.step, "epoch": self.epoch, "taken": self.taken})
        # Nobody goes on as if it were saved before it is.
        dist.barrier()

    def sum(self, *values):
        """Over all workers."""
        self.reduced = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(self.reduced)
        return self.reduced.tolist()

    def close(self):
        """Lets the process group go, which DDP holds too, before the tensor that was reduced last.

        PyTorch 1.13 waits for gloo's threads without letting go of Python's lock; one that is the last to hold a
        tensor of Python's needs that lock, and neither would ever go on.
        """
        del self.model
        dist.destroy_process_group()

    def make_step(self, images, indices):
        """One step of the optimiser; returns loss and accuracy over all workers."""
        share = len(indices) // self.args.accumulate
        losses, right = 0.0, 0
        for part in range(self.args.accumulate):
            x, y = images.batch(indices[part * share:(part + 1) * share], self.device)
            is_last = part == self.args.accumulate - 1
            with contextlib.nullcontext() if is_last else self.model.no_sync():
                output = self.model(x)
                loss = functional.cross_entropy(output, y) / self.args.accumulate
                loss.backward()
            losses += loss.item()
            right += (output.argmax(1) == y).sum().item()
        self.optimizer.step()
        self.optimizer.zero_grad()
        losses, right = self.sum(losses, right)
        return losses / self.world, right / self.args.batch

    def is_done(self):
        return self.epoch >= self.args.epochs or (self.args.steps and self.step >= self.args.steps)

    def train(self, images):
        self.model.train()
        sampler = DistributedSampler(images, self.world, self.rank, shuffle=True, seed=self.args.seed, drop_last=True)
        share = self.args.batch // self.world
        while not self.is_done():
            sampler.set_epoch(self.epoch)
            mine = list(sampler)
            while self.taken + self.args.batch <= len(mine) * self.world and not self.is_done():
                start = self.taken // self.world
                loss, accuracy = self.make_step(images, mine[start:start + share])
                self.step += 1
                self.taken += self.args.batch
                self.say("step %d epoch %d loss %.9g accuracy %.4f" % (self.step, self.epoch, loss, accuracy))
                every = self.args.checkpoint_every
                if self.args.checkpoint and every and self.step % every == 0:
                    self.save()
            if self.taken + self.args.batch > len(mine) * self.world:
                self.epoch, self.taken = self.epoch + 1, 0
                if self.args.checkpoint and not self.args.checkpoint_every:
                    self.save()

    @torch.no_grad()
    def test(self, images):
        """Share of the images that are told right; each worker takes its part of them."""
        self.model.eval()
        right = 0
        mine = torch.arange(self.rank, len(images), self.world)
        for indices in mine.split(256):
            x, y = images.batch(indices, self.device)
            # Not through DDP: the workers' last batches may be of unequal number.
            right += (self.model.module(x).argmax(1) == y).sum().item()
        return self.sum(right)[0] / len(images)


@record
def main():
    args = parse()
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    images = Images(args.data, "train", args.images)
    if len(images) < args.batch:
        raise SystemExit("train.py: %d images don't fill one batch of %d" % (len(images), args.batch))
    trainer = Trainer(args)
    trainer.train(images)
    accuracy = trainer.test(Images(args.data, "t10k", args.test_images))
    trainer.say("done: %d steps by %d workers, test accuracy %.4f" % (trainer.step, trainer.world, accuracy))
    trainer.close()


if __name__ == "__main__":
    main()
