// What Python asks of a device of runner.js beside that device's own calls. Submissions are counted as they
// end, and reads are kept until they are taken, so that Python has one call for each and none that waits;
// whoever wants to wait awaits `change()`, the next time that anything of this is new.

function watchDevice(device) {
  const landed = new Map(); // what reads gave, by their number: bytes, or an error
  let reads = 0;
  let finished = 0;
  let changed = null;
  let wake = () => {};

  function stir() {
    wake();
    changed = null;
  }

  function end() {
    finished += 1;
    stir();
  }

  function submit(list, params, copies) {
    device.run(list, params ?? null, copies ?? null);
    device.gpu.queue.onSubmittedWorkDone().then(end, end);
    return finished;
  }

  /** The first error there is: a kernel that was refused says more than what came of it. */
  async function firstError() {
    const errors = [];
    for (let asked = 0; asked < 2; asked += 1) {
      await device.ready().catch((error) => errors.push(error));
    }
    return errors.find((error) => error.code === "compile") ?? errors[0];
  }

  async function land(number, staged, bytes) {
    const early = await firstError();
    const read = await device.collect(staged, bytes).catch((error) => error);
    landed.set(number, early ?? read);
    stir();
  }

  /** Begin to read a staging buffer, and give the read's number. */
  function read(staged, bytes) {
    reads += 1;
    land(reads, staged, bytes);
    return reads;
  }

  /** The bytes of a read; undefined while it is under way. Its error is thrown. */
  function take(number) {
    const found = landed.get(number);
    landed.delete(number);
    if (found instanceof Error) {
      throw found;
    }
    return found;
  }

  function change() {
    changed ??= new Promise((go) => {
      wake = go;
    });
    return changed;
  }

  device.gpu.lost.then(stir);
  return {
    submit,
    read,
    take,
    change,
    finished: () => finished,
    lost: () => Boolean(device.lost),
    destroy: () => device.gpu.destroy(),
  };
}

export { watchDevice };
