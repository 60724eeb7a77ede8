"""torch.fft, torch.signal, stft and istft, and windows by their older names."""

from __future__ import annotations

import numpy as np
import pytest

import webgrad.torch as torch


def test_transforms() -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    t = torch.tensor(x)
    np.testing.assert_allclose(torch.fft.fft(t, dim=0).numpy(), np.fft.fft(x, axis=0), atol=1e-5)
    np.testing.assert_allclose(
        torch.fft.rfft2(t, norm="ortho").numpy(), np.fft.rfft2(x, norm="ortho"), atol=1e-5
    )
    back = torch.fft.irfftn(torch.fft.rfftn(t), s=(3, 4))
    np.testing.assert_allclose(back.numpy(), x, atol=1e-5)
    assert torch.fft.fft(torch.arange(4)).dtype == torch.complex64
    assert torch.fft.fftshift(torch.arange(4), dim=0).tolist() == [2, 3, 0, 1]
    assert torch.fft.fftfreq(4, 0.5).tolist() == [0, 0.5, -1, -0.5]
    assert torch.fft.rfftfreq(4, dtype=torch.float64).dtype == torch.float64
    out = torch.empty(0, dtype=torch.complex64)
    torch.fft.ifft(t, out=out)
    assert out.shape == (3, 4)
    with pytest.raises(RuntimeError, match="norm"):
        torch.fft.fft(t, norm="none")


def test_windows() -> None:
    window = torch.signal.windows.kaiser(6, beta=5.0, sym=False, requires_grad=True)
    assert isinstance(window, torch.Tensor)
    assert window.requires_grad
    np.testing.assert_allclose(window.detach().numpy(), np.kaiser(7, 5.0)[:-1], atol=1e-6)
    np.testing.assert_allclose(torch.hann_window(8).numpy(), np.hanning(9)[:-1], atol=1e-6)
    np.testing.assert_allclose(torch.hamming_window(8, periodic=False).numpy(), np.hamming(8), atol=1e-6)
    np.testing.assert_allclose(torch.blackman_window(8, False).numpy(), np.blackman(8), atol=1e-6)
    with pytest.raises(ValueError, match="float32 or float64"):
        torch.signal.windows.hann(4, dtype=torch.float16)
    with pytest.raises(ValueError, match="positive"):
        torch.signal.windows.gaussian(4, std=0.0)


def test_spectrograms() -> None:
    x = torch.sin(torch.arange(64.0))
    with pytest.raises(RuntimeError, match="return_complex"):
        torch.stft(x, 16)
    parts = x.stft(16, window=torch.hann_window(16), return_complex=False)
    whole = torch.stft(x, 16, window=torch.hann_window(16), return_complex=True)
    assert parts.shape == (9, 17, 2)
    np.testing.assert_allclose(parts[..., 1].numpy(), whole.imag.numpy())
    back = torch.istft(whole, 16, window=torch.hann_window(16))
    np.testing.assert_allclose(back.numpy(), x.numpy(), atol=1e-5)
