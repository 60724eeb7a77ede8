// webgrad's export: the module that it wrote, and nothing else.

async function prepare(workload) {
  const { open } = await import(`/data/${workload}/bundle/model.js`);
  const model = await open();
  const device = model.device.gpu;
  const buffer = device.createBuffer({ size: 16, usage: GPUBufferUsage.COPY_SRC }); // a read of it waits too
  const run = async () => {
    model.submit("run", {});
    return { device, buffer };
  };
  const result = async () => {
    const [{ data }] = Object.values(await model.run({}));
    return new Uint8Array(data.buffer);
  };
  return { run, result, about: `webgrad, ${model.info.variant}` };
}

export { prepare };
