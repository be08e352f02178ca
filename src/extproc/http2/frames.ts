/** HTTP/2's frames (RFC 9113, section 6). */
export const frameType = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const frameFlag = { ack: 0x1, endStream: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const

/** Why a stream or a connection ends. */
export const errorCode = {
  none: 0,
  protocol: 1,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  compression: 9,
  enhanceYourCalm: 11,
} as const

export const settingId = {
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const

export const frameHeaderBytes = 9

/** What a client says first. */
export const preface: Buffer = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/** Both sides begin with this, and it is all that this server takes and sends. */
export const defaultFrameBytes = 16_384

/** Flow control windows begin with this, and never grow above the second. */
export const defaultWindowBytes = 65_535
export const maxWindowBytes = 0x7fff_ffff

/** The highest id that a stream can have. */
export const maxStreamId = 0x7fff_ffff
