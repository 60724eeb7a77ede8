// tfjs on its WebGPU backend: the workloads by its ops, in a tidy.

const FILES = [
  "/peers/@tensorflow/tfjs/dist/tf.min.js",
  "/peers/@tensorflow/tfjs-backend-webgpu/dist/tf-backend-webgpu.min.js",
];

function script(address) {
  return new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement("script"), { src: address });
    element.onload = resolve;
    element.onerror = () => reject(new Error(`${address} was not loaded`));
    document.head.append(element);
  });
}

async function prepare(workload, work) {
  for (const each of FILES) await script(each);
  const { tf } = globalThis;
  await tf.setBackend("webgpu");
  await tf.ready();
  if (tf.getBackend() !== "webgpu") throw new Error("tfjs has no WebGPU here");
  const given = Object.entries(work.arrays).map(([name, { data, shape }]) => [name, tf.tensor(data, shape)]);
  const values = Object.fromEntries(given);
  const constants = CONSTANTS[workload](tf, work);
  const backend = tf.backend();
  const run = async () => {
    const result = tf.tidy(() => FUNCTIONS[workload](tf, values, work, constants));
    const { buffer, tensorRef } = result.dataToGPU(); // what was recorded is submitted by this
    const release = () => tf.dispose([result, tensorRef]);
    return { device: backend.device, buffer, release };
  };
  return { run, about: `tfjs ${tf.version.tfjs}` };
}

const CONSTANTS = {
  matmul: () => null,
  block: (tf, { arrays }) => {
    const [length] = arrays.x.shape;
    const rows = tf.range(0, length).reshape([length, 1]);
    return tf.where(rows.less(rows.transpose()), tf.scalar(-1e9), tf.scalar(0));
  },
};

function norm(tf, x, gain, bias) {
  const { mean, variance } = tf.moments(x, -1, true);
  return x.sub(mean).mul(variance.add(1e-5).rsqrt()).mul(gain).add(bias);
}

function gelu(x) {
  const inner = x.mul(x).mul(0.044715).add(1).mul(x).mul(Math.sqrt(2 / Math.PI));
  return inner.tanh().add(1).mul(x).mul(0.5);
}

const FUNCTIONS = {
  matmul: (tf, { a, b }) => tf.matMul(a, b),
  block: (tf, { x, wqkv, wo, w1, w2, gain, bias }, { heads }, mask) => {
    const [length, width] = x.shape;
    const qkv = tf.matMul(norm(tf, x, gain, bias), wqkv).reshape([length, 3, heads, width / heads]);
    const [q, k, v] = tf.unstack(qkv.transpose([1, 2, 0, 3]));
    const scores = tf.matMul(q, k, false, true).mul((width / heads) ** -0.5).add(mask);
    const attended = tf.matMul(tf.softmax(scores), v).transpose([1, 0, 2]).reshape([length, width]);
    const middle = tf.matMul(attended, wo).add(x);
    return tf.matMul(gelu(tf.matMul(norm(tf, middle, gain, bias), w1)), w2).add(middle);
  },
};

export { prepare };
