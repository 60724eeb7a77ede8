// jax-js: the workloads under its jit, on its WebGPU device. Its arrays are counted: each use but the last
// is a ref.

const LIBRARY = "/peers/@jax-js/jax/dist/index.js";

async function prepare(workload, work) {
  const jax = await import(LIBRARY);
  await jax.init("webgpu");
  jax.defaultDevice("webgpu");
  const given = Object.entries(work.arrays).map(
    ([name, { data, shape }]) => [name, jax.numpy.array(data, { shape, dtype: jax.numpy.float32 })],
  );
  const values = Object.fromEntries(given);
  await jax.blockUntilReady(values);
  const compiled = jax.jit(FUNCTIONS[workload](jax, work));
  const run = async () => {
    const refs = Object.entries(values).map(([name, each]) => [name, each.ref]);
    const result = compiled(Object.fromEntries(refs));
    const buffer = await result.ref.gpuBuffer();
    return { device: jax.getWebGPUDevice(), buffer, release: () => result.dispose() };
  };
  return { run, about: "jax-js 0.1.25, jit" };
}

const FUNCTIONS = {
  matmul: (jax) => ({ a, b }) => jax.numpy.matmul(a, b),
  block: (jax, { heads }) => ({ x, wqkv, wo, w1, w2, gain, bias }) => {
    const { nn, numpy: np } = jax;
    const [length, width] = x.shape;
    const norm = (value) => nn.standardize(value, -1).mul(gain.ref).add(bias.ref);
    const qkv = np.matmul(norm(x.ref), wqkv).reshape([length, 3, heads, width / heads]);
    const [q, k, v] = [0, 1, 2].map((at) => qkv.ref.slice([], at));
    qkv.dispose();
    const attended = nn.dotProductAttention(q, k, v, { isCausal: true }).reshape([length, width]);
    const middle = np.matmul(attended, wo).add(x);
    const inner = nn.gelu(np.matmul(norm(middle.ref), w1), { approximate: true });
    const result = np.matmul(inner, w2).add(middle);
    gain.dispose();
    bias.dispose();
    return result;
  },
};

export { prepare };
