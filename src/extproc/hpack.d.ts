/** The part of hpack.js that is used; the package brings no types. */
declare module 'hpack.js' {
  interface Decompressor {
    write(block: Buffer): boolean
    /** Decodes what was written. Throws, or emits `error`, on what is no HPACK, and on what `push` throws. */
    execute(): void
    /** Called with each header, in the order of the block, as soon as it is decoded. */
    push: (header: { readonly name: string; readonly value: string }) => boolean
    on(event: 'error', listener: (error: Error) => void): this
  }
  const hpack: {
    readonly decompressor: { create(options: { readonly table: { readonly maxSize: number } }): Decompressor }
  }
  // biome-ignore lint/style/noDefaultExport: a CommonJS package has no other one.
  export default hpack
}
