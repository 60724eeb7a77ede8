// Checks WGSL with Tint on Dawn's null backend, which needs no GPU.
// In: one JSON object {label, text} a line on stdin. Out: one JSON object {label, errors} a line on stdout,
// where errors is a list of {line, column, message}; empty means that Tint takes the text.
import { createInterface } from 'node:readline';
import { create } from 'webgpu';

const gpu = create(['backend=null']);
const adapter = await gpu.requestAdapter();
if (adapter === null) {
  console.error('tint.mjs: Dawn gave no null adapter');
  process.exit(2);
}
const wanted = ['shader-f16', 'subgroups'].filter((feature) => adapter.features.has(feature));
const device = await adapter.requestDevice({
  requiredFeatures: wanted,
  requiredLimits: {
    maxComputeInvocationsPerWorkgroup: adapter.limits.maxComputeInvocationsPerWorkgroup,
    maxComputeWorkgroupSizeX: adapter.limits.maxComputeWorkgroupSizeX,
    maxComputeWorkgroupStorageSize: adapter.limits.maxComputeWorkgroupStorageSize,
  },
});

async function check(text) {
  device.pushErrorScope('validation');
  const module = device.createShaderModule({ code: text });
  const info = await module.getCompilationInfo();
  const scope = await device.popErrorScope();
  const errors = [...info.messages]
    .filter((message) => message.type === 'error')
    .map((message) => ({ line: message.lineNum, column: message.linePos, message: message.message }));
  if (errors.length === 0 && scope !== null) {
    errors.push({ line: 0, column: 0, message: scope.message });
  }
  return errors;
}

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === '') continue;
  const { label, text } = JSON.parse(line);
  console.log(JSON.stringify({ label, errors: await check(text) }));
}
device.destroy();
// Dawn keeps the event loop alive; end only once everything written has left.
process.stdout.write('', () => process.exit(0));
