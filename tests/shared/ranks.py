"""Two processes of one group, for what ranks have to agree on."""

import multiprocessing
import multiprocessing.connection
import os
import sys

import pytest
import torch
import world

without_cuda = pytest.mark.skipif(
    torch.cuda.is_available(), reason='forks, which CUDA does not survive'
)


def on_two_ranks(function, folder):
    """Calls `function(rank)` in two forks of this process, which meet in a folder; both results."""

    def run(rank):
        torch.distributed.init_process_group(
            'gloo', init_method=f'file://{folder}/rendezvous', rank=rank, world_size=2
        )
        torch.save(function(rank), folder / f'{rank}.pth')
        torch.distributed.destroy_process_group()

    context = multiprocessing.get_context('fork')  # quick: everything is imported
    ranks = [context.Process(target=run, args=(rank,)) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(60)
    return [torch.load(folder / f'{rank}.pth', weights_only=False) for rank in range(2)]


class Rank:
    """A tool in a fork, which has imported everything already, with its output in files."""

    def __init__(self, folder, rank, port, command):
        self.files = [folder / f'{rank}_{port}.{name}' for name in ('out', 'err')]
        context = multiprocessing.get_context('fork')
        self.process = context.Process(target=self.run, args=(rank, port, command))
        self.process.start()

    def run(self, rank, port, command):
        for number, file in enumerate(self.files, 1):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
        sys.stdout, sys.stderr = os.fdopen(1, 'w'), os.fdopen(2, 'w')
        os.environ.update(
            RANK=rank, LOCAL_RANK=rank, WORLD_SIZE='2', MASTER_ADDR='127.0.0.1', MASTER_PORT=port
        )
        sys.exit(world.run_tool(*command, '--launcher', 'pytorch'))

    def outcome(self):
        """Exit code, stdout and stderr."""
        self.process.join(240)
        self.process.kill()
        self.process.join()
        return self.process.exitcode, *(file.read_text() for file in self.files)


def start_tool(folder, *command):
    """Starts two ranks of a tool, which nothing but a port connects; `outcomes` waits for them."""
    port = world.free_port()
    return [Rank(folder, rank, port, command) for rank in ('0', '1')]


def outcomes(ranks):
    """Exit code, stdout and stderr of each rank."""
    return [rank.outcome() for rank in ranks]


def end_as_torchrun(ranks):
    """The same, but a rank that fails ends the others."""
    waiting = {rank.process.sentinel: rank.process for rank in ranks}
    for sentinel in multiprocessing.connection.wait(waiting, 300):
        waiting[sentinel].join()
        if waiting[sentinel].exitcode:
            for rank in ranks:
                rank.process.terminate()
    return outcomes(ranks)
