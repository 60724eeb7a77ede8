// Values of tensors from texts, files and fills, and what there is to say about them: no elements here.
// A mistake is an Error whose message names the input and says what is wanted.

const INTEGERS = new Set(["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]);

function sizeOf(shape) {
  return shape.reduce((product, each) => product * each, 1);
}

function shapeText(shape) {
  return shape.length ? shape.join(" × ") : "one number";
}

function parsedText(name, text) {
  const trimmed = text.trim();
  if (!trimmed.startsWith("["))
    return trimmed
      .split(/[\s,;]+/)
      .filter(Boolean)
      .map(wordValue);
  try {
    return JSON.parse(trimmed)
      .flat(Infinity)
      .map((each) => (typeof each === "boolean" ? Number(each) : each));
  } catch {
    throw new Error(`${name} is no list: write numbers with commas between them, or [[1, 2], [3, 4]].`);
  }
}

const WORDS = { true: 1, false: 0, nan: NaN, inf: Infinity, "-inf": -Infinity };

function wordValue(word) {
  return WORDS[word.toLowerCase()] ?? Number(word);
}

// Numbers for a tensor of the plan, from what was written.
function tensorOfText(name, { shape, dtype }, text) {
  const numbers = parsedText(name, text);
  const wanted = sizeOf(shape);
  if (numbers.length !== wanted) {
    throw new Error(`${name} has ${numbers.length} numbers, and ${wanted} are wanted (${shapeText(shape)}).`);
  }
  numbers.forEach((each, place) => checkNumber(`number ${place + 1} of ${name}`, dtype, each, text));
  return numbers;
}

function checkNumber(name, dtype, value, text) {
  if (typeof value !== "number" || (Number.isNaN(value) && !/nan/i.test(text)))
    throw new Error(`${name} is no number.`);
  if (INTEGERS.has(dtype) && !Number.isInteger(value)) {
    throw new Error(`${name} is ${value}, and ${dtype} takes whole numbers.`);
  }
  if (dtype === "bool" && value !== 0 && value !== 1)
    throw new Error(`${name} is ${value}, and bool takes 0 and 1.`);
}

function numberOfText(name, dtype, text) {
  const value = wordValue(text.trim());
  if (text.trim() === "") throw new Error(`${name} is empty: write a number.`);
  checkNumber(name, dtype, value, text);
  return value;
}

// From a normal distribution, by the Box-Muller transform.
function normal() {
  return Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
}

const RANDOM = {
  bool: () => Math.round(Math.random()),
  float: normal,
  whole: () => Math.floor(10 * Math.random()),
};
const FILLS = {
  Zeros: () => () => 0,
  Ones: () => () => 1,
  Random: (dtype) => RANDOM[dtype === "bool" ? "bool" : INTEGERS.has(dtype) ? "whole" : "float"],
};

function filledTensor({ shape, dtype }, fill) {
  return Array.from({ length: sizeOf(shape) }, FILLS[fill](dtype));
}

// How a list is written where it can be edited: rows of the last axis, five digits.
function textOfTensor({ shape, dtype }, numbers) {
  const told = Array.from(numbers, (each) =>
    /float/.test(dtype) ? Number(Number(each).toPrecision(5)) : each,
  );
  const columns = shape.at(-1) ?? 1;
  const rows = [];
  for (let place = 0; place < told.length; place += columns)
    rows.push(told.slice(place, place + columns).join(", "));
  return rows.join("\n");
}

// Files

const NPY = {
  "<f4": Float32Array,
  "<f8": Float64Array,
  "<i4": Int32Array,
  "<u4": Uint32Array,
  "<i2": Int16Array,
  "<u2": Uint16Array,
  "|i1": Int8Array,
  "|u1": Uint8Array,
  "|b1": Uint8Array,
  "<i8": BigInt64Array,
};
const RAW = {
  float32: Float32Array,
  int32: Int32Array,
  uint32: Uint32Array,
  uint8: Uint8Array,
  int8: Int8Array,
};

function npyValues(name, bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const wide = bytes[6] > 1;
  const start = (wide ? 12 : 10) + (wide ? view.getUint32(8, true) : view.getUint16(8, true));
  const header = new TextDecoder("latin1").decode(bytes.subarray(wide ? 12 : 10, start));
  const kind = /'descr':\s*'([^']+)'/.exec(header)?.[1];
  if (!NPY[kind])
    throw new Error(`${name}: the .npy file has values of type ${kind ?? "(none)"}, which is not read.`);
  if (/'fortran_order':\s*True/.test(header)) {
    throw new Error(`${name}: the .npy file is in column order; save np.ascontiguousarray(x).`);
  }
  const whole = bytes.length - ((bytes.length - start) % NPY[kind].BYTES_PER_ELEMENT);
  return Array.from(new NPY[kind](bytes.slice(start, whole).buffer), Number);
}

// Numbers for a tensor of the plan, from a .npy file or from the plain bytes of its values.
function tensorOfFile(name, { shape, dtype }, bytes) {
  const isNpy = bytes[0] === 0x93 && String.fromCharCode(...bytes.subarray(1, 6)) === "NUMPY";
  const wanted = sizeOf(shape);
  if (!isNpy && (!RAW[dtype] || bytes.length !== wanted * RAW[dtype].BYTES_PER_ELEMENT)) {
    throw new Error(
      `${name}: the file is no .npy file, and its ${bytes.length} bytes are no ${wanted} of ${dtype}.`,
    );
  }
  const numbers = isNpy ? npyValues(name, bytes) : Array.from(new RAW[dtype](bytes.slice().buffer));
  if (numbers.length !== wanted) {
    throw new Error(
      `${name}: the file has ${numbers.length} numbers, and ${wanted} are wanted (${shapeText(shape)}).`,
    );
  }
  return numbers;
}

export { FILLS, sizeOf, shapeText, numberOfText, tensorOfText, tensorOfFile, filledTensor, textOfTensor };
