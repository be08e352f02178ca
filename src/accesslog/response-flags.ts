/** Envoy's response flags, by their short names, that tell of a client that closed or reset its side before the answer had ended. */
const clientFlags: ReadonlySet<string> = new Set(['DC', 'DR'])

/** Of an upstream that refused, reset, timed out or was not to be had. */
const upstreamFlags: ReadonlySet<string> = new Set(['UH', 'UT', 'UR', 'UF', 'UC', 'UO', 'URX', 'UMSDR', 'UPE', 'DF'])

/** Of Envoy's own reasons to end an answer. */
const envoyFlags: ReadonlySet<string> = new Set(['LR', 'NR', 'FI', 'SI', 'DPE', 'DT', 'NC', 'OM'])

/** What keeps an answer from arriving whole. */
export interface ResponseFlags {
  readonly clientDisconnected: boolean
  readonly upstreamFailed: boolean
  /** One of these, or of Envoy's own. */
  readonly isCut: boolean
}

const none: ResponseFlags = Object.freeze({ clientDisconnected: false, upstreamFailed: false, isCut: false })

/** Reads `%RESPONSE_FLAGS%`: short names with commas between them; undefined, as nearly always, for none. */
export const readFlags = (text: string | undefined): ResponseFlags => {
  if (text === undefined) return none
  const raised = text.split(',')
  const clientDisconnected = raised.some((flag) => clientFlags.has(flag))
  const upstreamFailed = raised.some((flag) => upstreamFlags.has(flag))
  return {
    clientDisconnected,
    upstreamFailed,
    isCut: clientDisconnected || upstreamFailed || raised.some((flag) => envoyFlags.has(flag)),
  }
}
