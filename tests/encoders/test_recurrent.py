"""Recurrent layers, compared with PyTorch's packed sequences."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from spanwise.encoders.recurrent import BiLSTM, VariationalDropout, masked_max

LENGTHS = torch.tensor([3, 7, 1, 5])


def torch_lstm(ours: BiLSTM, size: int, hidden: int, layers: int) -> nn.LSTM:
    """PyTorch's bidirectional LSTM with our weights."""
    theirs = nn.LSTM(size, hidden, layers, batch_first=True, bidirectional=True)
    state = {}
    for depth in range(layers):
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            state[f"{name}_l{depth}"] = getattr(ours.forwards[depth], f"{name}_l0")
            state[f"{name}_l{depth}_reverse"] = getattr(ours.backwards[depth], f"{name}_l0")
    theirs.load_state_dict(state)
    return theirs


def packed(lstm: nn.LSTM, sequences: Tensor) -> tuple[Tensor, Tensor]:
    states, (final, _) = lstm(pack_padded_sequence(sequences, LENGTHS, batch_first=True, enforce_sorted=False))
    return pad_packed_sequence(states, batch_first=True)[0], torch.cat([final[0], final[1]], dim=1)


def test_states_equal_those_of_packed_sequences() -> None:
    ours = BiLSTM(6, 4, layers=2)
    sequences = torch.randn(4, 7, 6)
    expected, _ = packed(torch_lstm(ours, 6, 4, 2), sequences)
    states = ours(sequences, LENGTHS)
    for row, length in enumerate(LENGTHS):
        torch.testing.assert_close(states[row, :length], expected[row, :length])


def test_final_states_equal_those_of_packed_sequences() -> None:
    ours = BiLSTM(6, 4)
    sequences = torch.randn(4, 7, 6)
    torch.testing.assert_close(ours.final(sequences, LENGTHS), packed(torch_lstm(ours, 6, 4, 1), sequences)[1])


def test_padding_gets_no_gradient() -> None:
    ours = BiLSTM(6, 4, layers=2)
    sequences = torch.randn(4, 7, 6, requires_grad=True)
    mask = (torch.arange(7) < LENGTHS[:, None])[:, :, None]
    (ours(sequences, LENGTHS) * mask).sum().backward()
    assert sequences.grad is not None
    assert (sequences.grad.masked_select(~mask) == 0).all()
    assert (sequences.grad.masked_select(mask) != 0).all()


def test_variational_dropout_drops_a_feature_from_a_whole_sequence() -> None:
    dropout = VariationalDropout(0.5)
    output = dropout(torch.ones(8, 5, 40))
    assert (output == output[:, :1]).all()
    assert set(output.unique().tolist()) == {0.0, 2.0}
    assert (output[0] != output[1]).any()
    dropout.eval()
    assert (dropout(torch.ones(2, 3, 4)) == 1).all()


def test_masked_max_ignores_padding() -> None:
    states = torch.tensor([[[-1.0, -5.0], [-2.0, -3.0], [9.0, 9.0]], [[1.0, 1.0]] * 3])
    mask = torch.tensor([[True, True, False], [False] * 3])
    assert masked_max(states, mask).tolist() == [[-1.0, -3.0], [0.0, 0.0]]
    assert masked_max(states.half(), mask).tolist() == [[-1.0, -3.0], [0.0, 0.0]]


def test_training_in_bfloat16_is_close_to_float32() -> None:
    torch.manual_seed(0)
    lstm = BiLSTM(12, 8, layers=2).train()
    sequences, lengths = torch.randn(3, 7, 12, requires_grad=True), torch.tensor([7, 3, 1])
    results = []
    for lstm.trains_in_bfloat16 in (False, True):
        states = lstm(sequences, lengths)
        results.append((states, *torch.autograd.grad(states.sum(), [sequences, *lstm.parameters()])))
    for single, mixed in zip(*results, strict=True):
        assert mixed.dtype == torch.float32
        assert not torch.equal(single, mixed)
        assert (single - mixed).norm() < 0.02 * single.norm()
    assert torch.equal(lstm.eval()(sequences, lengths), results[0][0])
