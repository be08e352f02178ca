// What the tests use of it; TypeScript has these only together with everything of a browser.
declare namespace WebAssembly {
  interface Module {
    readonly exports?: never
  }
  interface Memory {
    readonly buffer: ArrayBuffer
  }
  function compile(bytes: Uint8Array): Promise<Module>
  class Instance {
    constructor(module: Module, imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>)
    readonly exports: Readonly<Record<string, unknown>>
  }
}
