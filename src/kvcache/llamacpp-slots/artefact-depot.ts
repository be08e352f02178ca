import type { Artefact } from './artefact.ts'

/** Where artefacts rest between turns: the folder that the engines share, or a store of one's own behind it. */
export interface ArtefactDepot {
  /** Whether an artefact has to be fetched before an engine can load it. */
  readonly isRemote: boolean
  /**
   * Makes sure that an engine can load the artefact, whole and unchanged. An engine must never be given another file: llama-server dies of a
   * cut one and does not notice a changed one.
   *
   * @throws when the store cannot be read, or `signal` fires.
   */
  open(artefact: Artefact, signal: AbortSignal): Promise<OpenOutcome>
  /**
   * Takes in the file that an engine has just written under `from`. Resolves to its digest (SHA-256, hex); undefined: it is not `bytes` long, so it
   * is not whole.
   *
   * @throws when a file cannot be read or the store cannot be written, or `signal` fires.
   */
  keep(file: {
    readonly from: string
    readonly to: string
    readonly bytes: number
    readonly signal: AbortSignal
  }): Promise<string | undefined>
  /** Idempotent. @throws when the store cannot be written. */
  remove(file: string, signal: AbortSignal): Promise<void>
}

export type OpenOutcome =
  | {
      readonly kind: 'ready'
      /** What an engine is to load. */
      readonly file: string
      /** To be called when no engine reads it any more. Never rejects. */
      close(): Promise<void>
    }
  | { readonly kind: 'missing' }
  | { readonly kind: 'damaged' }
