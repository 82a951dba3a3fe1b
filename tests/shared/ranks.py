"""Two processes of one group, for what ranks have to agree on."""

import multiprocessing

import pytest
import torch

without_cuda = pytest.mark.skipif(
    torch.cuda.is_available(), reason='forks, which CUDA does not survive'
)


def on_two_ranks(function, folder):
    """Calls `function(rank)` in two forks of this process and gives both results.

    Args:
        function: What each rank computes; its result is saved by torch.
        folder: Where the ranks meet and leave their results.

    Returns:
        The results of rank 0 and 1.
    """

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
