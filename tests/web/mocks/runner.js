// A runner for the tests of single files: its model doubles x, and tells what its weight file holds.
async function load(source, { onProgress }) {
  const loaded = [];
  const bytes = await source.file("weights.safetensors", (count) => loaded.push(count));
  const sum = bytes.reduce((total, each) => (total + each) % 65521, 0);
  globalThis.seen = { plan: source.plan.name, bytes: bytes.length, sum, loaded, markup: "</script><!--<script>" };
  onProgress({ stage: "ready", loaded: 1, total: 1 });
  const output = (x, rate) => ({ data: Float32Array.from(x, (each) => each * rate), shape: [2, 3], dtype: "float32" });
  return {
    info: { device: { name: "mock" }, variant: "", bytes: bytes.length },
    run: async ({ x, rate }) => ({ output: output(x, rate) }),
    close() {},
  };
}

export { load };
