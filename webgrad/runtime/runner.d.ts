// Types of runner.js: a device of WebGPU from plain data, and exported models on one.

export type ErrorCode =
  | "no-webgpu" | "insecure" | "no-adapter" | "no-device" | "lost" | "out-of-memory"
  | "compile" | "validation" | "weights" | "input" | "internal";

/** What went wrong: `code` is for programs, `message` for users, `details` the browser's own words. */
export declare class RunnerError extends Error {
  constructor(code: ErrorCode, message?: string, details?: string);
  readonly code: ErrorCode;
  readonly details: string;
}

export interface DeviceInfo {
  name: string;
  vendor: string;
  architecture: string;
  description: string;
  features: string[];
  limits: Record<string, number>;
  /** Computed by the processor: a fallback adapter, SwiftShader, llvmpipe. */
  software: boolean;
  /** The smallest and the largest; zeros where there are no subgroups. */
  subgroupSizes: [number, number];
}

export interface DeviceOptions {
  /** A `GPU` other than the browser's own `navigator.gpu`. */
  gpu?: unknown;
  /** Those wanted where the adapter offers them. */
  features?: string[];
  /** Those asked for; every limit of the adapter unless given. */
  limits?: Record<string, number>;
  /** true asks for the browser's software adapter. */
  software?: boolean;
  powerPreference?: "low-power" | "high-performance";
  onLost?: (error: RunnerError) => void;
}

/** Buffers, pipelines, groups and prepared lists are small numbers, each released by its function. */
export interface Device {
  /** The `GPUDevice`. */
  readonly gpu: any;
  readonly info: DeviceInfo;
  /** Why the device is gone; null while it is there. */
  readonly lost: string | null;
  createBuffer(bytes: number, usage?: number): number;
  releaseBuffer(buffer: number): void;
  /** The offset is a multiple of 4; bytes after the last whole word are padded with zeros. */
  write(buffer: number, offset: number, bytes: Uint8Array): void;
  /** `accesses` has a letter for each storage binding: "r" reads, "w" reads and writes. */
  createPipeline(text: string, entry: string, accesses: string, label?: string): number;
  releasePipeline(pipeline: number): void;
  /** Waits for every pipeline asked for; rejects with the compiler's words. */
  ready(onStep?: (done: number, all: number) => void): Promise<void>;
  /** `ranges` has a buffer, an offset and bytes for each binding. */
  createGroup(accesses: string, ranges: ArrayLike<number>): number;
  releaseGroup(group: number): void;
  /** `rows` has a pipeline, a group and a grid of three for each dispatch. */
  prepare(rows: Int32Array): number;
  releasePrepared(list: number): void;
  /**
   * One submission: the dispatches of a list, then copies of (source, offset, target, offset, bytes).
   * `params` has 256 bytes a dispatch; null stands for those of the list's last run.
   */
  run(list: number, params?: Uint8Array | null, copies?: ArrayLike<number> | null): void;
  /** A buffer that runs may copy to and `collect` reads, once. */
  stage(bytes: number): number;
  collect(staged: number, bytes: number): Promise<Uint8Array>;
  read(buffer: number, offset: number, bytes: number): Promise<Uint8Array>;
  /** Waits until everything submitted so far has run. */
  done(): Promise<void>;
  close(): void;
}

export type Numbers = number | boolean | Numbers[];
export type TensorArray =
  | Float32Array | Int32Array | Uint32Array | Int16Array | Uint16Array | Int8Array | Uint8Array;

/** A typed array, numbers in lists however nested, or something that has them as `data`. */
export type TensorInput<Data extends TensorArray = TensorArray> = Data | Numbers[] | { data: Data | Numbers[] };

export interface Output<Data extends TensorArray = TensorArray> {
  data: Data;
  shape: number[];
  dtype: string;
}

export interface Progress {
  stage: "adapter" | "weights" | "compile" | "ready";
  /** Bytes of weights, or kernels. */
  loaded: number;
  total: number;
}

export interface LoadOptions extends DeviceOptions {
  onProgress?: (progress: Progress) => void;
  /** The label of a variant of the plan, instead of the first that suits the adapter. */
  variant?: string;
  /** A device that stays open when the model is closed. */
  device?: Device;
  signal?: AbortSignal;
}

export interface FunctionTypes {
  inputs: object;
  outputs: object;
}

type Anything = Record<string, { inputs: Record<string, TensorInput | number>; outputs: Record<string, Output> }>;
type DefaultName<Functions> = "run" extends keyof Functions ? "run" : keyof Functions;

export interface Model<Functions extends { [Name in keyof Functions]: FunctionTypes } = Anything> {
  /** Calls may overlap: they run in the order in which they are made. */
  run<Name extends keyof Functions = DefaultName<Functions>>(
    inputs: Functions[Name]["inputs"], name?: Name): Promise<Functions[Name]["outputs"]>;
  readonly functions: {
    [Name in keyof Functions]: (inputs: Functions[Name]["inputs"]) => Promise<Functions[Name]["outputs"]>;
  };
  /** Runs a function for what it does to the state, without reading its outputs. */
  submit<Name extends keyof Functions>(name: Name, inputs?: Functions[Name]["inputs"]): void;
  state(name: string): Promise<Output>;
  /** Sets all state to its first value. */
  reset(): void;
  close(): void;
  readonly device: Device;
  readonly info: { device: DeviceInfo; variant: string; bytes: { weights: number; state: number; working: number } };
}

/** What a plan and its weights can be read from instead of an address. */
export interface PlanSource {
  plan: object;
  /** A weight file's bytes; `onBytes` may be told how many are there so far. */
  file: (name: string, onBytes: (loaded: number) => void) => Promise<Uint8Array>;
}

export declare function openDevice(options?: DeviceOptions): Promise<Device>;
export declare function load<Functions extends { [Name in keyof Functions]: FunctionTypes } = Anything>(
  source: string | URL | PlanSource, options?: LoadOptions): Promise<Model<Functions>>;
