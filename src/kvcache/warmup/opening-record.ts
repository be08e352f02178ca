import type { KvOpening } from '../kv-connector.ts'

const forms = ['completions', 'chat', 'responses'] as const

/** A session's first request as bytes for the vault: its form in the first byte, then its body. */
export const openingToBytes = (opening: KvOpening): Uint8Array =>
  Buffer.concat([Buffer.from([forms.indexOf(opening.form)]), opening.body])

/** Undefined for what is no such record. */
export const openingFromBytes = (bytes: Uint8Array): KvOpening | undefined => {
  const form = forms[bytes[0] ?? forms.length]
  return form === undefined ? undefined : { form, body: bytes.subarray(1) }
}
