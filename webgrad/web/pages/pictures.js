// Pictures as a model's input, and its scores as shares: no elements here, only numbers.
// Facts are those of page.json: height, width, channels (1 or 3), mean and std (per channel, of values from 0
// to 1), layout ("channels-first" or "channels-last").

const [RED, BLUE] = [0.299, 0.114]; // how bright they look; green is the rest

// Averages of equal blocks of an RGBA picture: (height, width, 3), values from 0 to 1, on white where it is
// transparent.
function shrunk(rgba, wide, high, width, height) {
  const result = new Float32Array(height * width * 3);
  for (let row = 0; row < height; row += 1) {
    const [top, bottom] = [Math.floor((row * high) / height), Math.floor(((row + 1) * high) / height)];
    for (let column = 0; column < width; column += 1) {
      const [left, right] = [Math.floor((column * wide) / width), Math.floor(((column + 1) * wide) / width)];
      const at = (row * width + column) * 3;
      for (let y = top; y < bottom; y += 1) {
        for (let x = left; x < right; x += 1) {
          const from = (y * wide + x) * 4;
          const alpha = rgba[from + 3] / 255;
          for (let channel = 0; channel < 3; channel += 1) {
            result[at + channel] += 1 - alpha + (alpha * rgba[from + channel]) / 255;
          }
        }
      }
      const count = (bottom - top) * (right - left);
      for (let channel = 0; channel < 3; channel += 1) result[at + channel] /= count;
    }
  }
  return result;
}

// What the model sees: (height, width, channels), values from 0 to 1.
function seenBy(facts, colours, inverted) {
  const { height, width, channels } = facts;
  const result = new Float32Array(height * width * channels);
  for (let place = 0; place < height * width; place += 1) {
    const [red, green, blue] = colours.subarray(3 * place, 3 * place + 3);
    const grey = green + RED * (red - green) + BLUE * (blue - green); // exact where all three are equal
    const values = channels === 1 ? [grey] : [red, green, blue];
    values.forEach((value, channel) => {
      result[place * channels + channel] = inverted ? 1 - value : value;
    });
  }
  return result;
}

// The same as the model's input: normalised, in its layout.
function inputOf(facts, seen) {
  const { height, width, channels, mean = [0], std = [1], layout = "channels-first" } = facts;
  const result = new Float32Array(seen.length);
  const size = height * width;
  for (let channel = 0; channel < channels; channel += 1) {
    const [middle, spread] = [mean[channel] ?? mean[0], std[channel] ?? std[0]];
    for (let place = 0; place < size; place += 1) {
      const to = layout === "channels-first" ? channel * size + place : place * channels + channel;
      result[to] = (seen[place * channels + channel] - middle) / spread;
    }
  }
  return result;
}

function softmax(logits) {
  const largest = Math.max(...logits);
  const powers = Array.from(logits, (each) => Math.exp(each - largest));
  const total = powers.reduce((sum, each) => sum + each, 0);
  return powers.map((each) => each / total);
}

// The likeliest classes, best first: [[class, share], …].
function topClasses(shares, most = 5) {
  return [...shares.entries()].sort((one, other) => other[1] - one[1]).slice(0, most);
}

export { shrunk, seenBy, inputOf, softmax, topClasses };
