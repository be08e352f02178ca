import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'

const macBytes = 16
const macLength = Math.ceil((macBytes * 8) / 6)

const macOf = (key: KeyObject, text: string): string =>
  createHmac('sha256', key).update(text).digest().subarray(0, macBytes).toString('base64url')

/** `text` behind its HMAC-SHA-256, cut to 128 bits. */
export const sign = (key: KeyObject, text: string): string => macOf(key, text) + text

/** The text that was signed; undefined: with another key, or it was changed since. */
export const signedText = (key: KeyObject, signed: string): string | undefined => {
  const text = signed.slice(macLength)
  const [given, own] = [Buffer.from(signed.slice(0, macLength)), Buffer.from(macOf(key, text))]
  return given.length === own.length && timingSafeEqual(given, own) ? text : undefined
}
