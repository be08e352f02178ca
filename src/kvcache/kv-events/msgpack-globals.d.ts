// The type declarations of @msgpack/msgpack name a browser's type, which Node's do not have.
type BufferSource = ArrayBufferView | ArrayBuffer
