/**
 * Marks the payloads of stored artefacts with the connector and the pool that wrote them, so that none is given to another connector, or taken
 * for removed by it.
 */
export interface PayloadTag {
  write(payload: string): string
  /** The payload as it was written; undefined: another connector or pool wrote it. */
  read(tagged: string): string | undefined
}

/** Changes when payloads of an earlier version must not be read. */
const version = 1

export const createPayloadTag = (connector: string, pool: string): PayloadTag => {
  const tag = `${version}/${connector}/${pool} `
  return {
    write: (payload) => tag + payload,
    read: (tagged) => (tagged.startsWith(tag) ? tagged.slice(tag.length) : undefined),
  }
}
