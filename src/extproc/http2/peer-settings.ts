import { errorCode, maxWindowBytes, settingId } from './frames.ts'

const settingBytes = 6
const minFrameBytes = 16_384
const maxFrameBytes = 16_777_215

/** What a client's SETTINGS say of what this server looks at, or why they cannot be. */
export type PeerSettings =
  | { readonly kind: 'settings'; readonly initialWindowBytes: number | undefined }
  | { readonly kind: 'error'; readonly code: number }

/** Reads the payload of a SETTINGS frame. The last value of a setting counts; unknown settings are passed over. */
export const readPeerSettings = (payload: Buffer): PeerSettings => {
  if (payload.length % settingBytes !== 0) return { kind: 'error', code: errorCode.frameSize }
  let initialWindowBytes: number | undefined
  for (let at = 0; at < payload.length; at += settingBytes) {
    const id = payload.readUInt16BE(at)
    const value = payload.readUInt32BE(at + 2)
    const code = faultOf(id, value)
    if (code !== undefined) return { kind: 'error', code }
    if (id === settingId.initialWindowSize) initialWindowBytes = value
  }
  return { kind: 'settings', initialWindowBytes }
}

const faultOf = (id: number, value: number): number | undefined => {
  switch (id) {
    case settingId.enablePush:
      return value > 1 ? errorCode.protocol : undefined
    case settingId.initialWindowSize:
      return value > maxWindowBytes ? errorCode.flowControl : undefined
    case settingId.maxFrameSize:
      return value < minFrameBytes || value > maxFrameBytes ? errorCode.protocol : undefined
    default:
      return undefined
  }
}

/** The payload of a SETTINGS frame of our own. */
export const settingsPayload = (settings: readonly (readonly [id: number, value: number])[]): Buffer => {
  const payload = Buffer.alloc(settings.length * settingBytes)
  for (const [index, [id, value]] of settings.entries()) {
    payload.writeUInt16BE(id, index * settingBytes)
    payload.writeUInt32BE(value, index * settingBytes + 2)
  }
  return payload
}
