import { createHash } from 'node:crypto'
import type {
  AttachOutcome,
  EngineField,
  KvConnector,
  KvTurn,
  OffloadOutcome,
} from '../../../src/kvcache/kv-connector.ts'
import type { SessionKey, StoredKv, TenantKey } from '../../../src/sessions/session-record.ts'

/** Token counts of one answer, by the engine's own account. */
export interface TestUsage {
  readonly promptTokens: number
  readonly outputTokens: number
  readonly cachedTokens: number
}

/** A real engine. */
export interface TestPod {
  /** As the connector knows it. */
  readonly address: string
  /** Answers a prompt with a few tokens. `sessionId` goes along as `x-session-id`. */
  run(request: {
    readonly prompt: string
    readonly sessionId?: string
    readonly fields?: Readonly<Record<string, EngineField>>
  }): Promise<TestUsage>
  /** How many tokens of the prompt lie anywhere in the pod, for whoever asks. Leaves the prompt there. */
  probe(prompt: string): Promise<number>
  /** Loads from the store that the pod was asked for so far. */
  loads(): number
  /** Keeps loads from reaching the engine until the function it resolves to is called. */
  holdLoads(): () => void
  /** Ends the engine at once and starts it anew under its address. */
  restart(): Promise<void>
}

/** Two pods, one store, and any number of connectors as different gateway processes would have them. */
export interface KvTestBed {
  readonly pods: readonly [TestPod, TestPod]
  /** A connector that shares all state with the others of this bed. Everything is young enough to be an orphan. */
  connect(options?: { readonly callTimeoutMs?: number; readonly pods?: readonly string[] }): KvConnector
  /** Names of the artefacts in the store. */
  artefacts(): Promise<readonly string[]>
  /** Changes stored bytes of an artefact, or cuts it. */
  damage(artefactId: string, how: 'changed' | 'cut'): Promise<void>
  /** Forgets what the connectors know of the pods, as when their shared state is lost. */
  loseState(): void
  close(): Promise<void>
}

export interface TestSession {
  readonly id: string
  readonly key: SessionKey
  readonly tenant: TenantKey
}

let sessions = 0

export const newSession = (): TestSession => {
  sessions += 1
  const id = `ctx_${String(sessions).padStart(32, '0')}`
  const key = createHash('sha256').update(id).digest('base64url') as SessionKey
  return { id, key, tenant: createHash('sha256').update('tenant').digest('base64url') as TenantKey }
}

let turns = 0

export const turnOf = (session: TestSession, pod: TestPod): KvTurn => {
  turns += 1
  const { key, tenant } = session
  return { session: key, tenant, model: 'tiny', turnId: `turn-${turns}`, pod: pod.address }
}

let prompts = 0

const [firstLetter, letters] = [0x21, 90]

/** About 400 tokens of which not even the first character is that of the 89 prompts before. */
export const newPrompt = (): string => {
  prompts += 1
  return `${String.fromCharCode(firstLetter + (prompts % letters))} ${prompts} is where this conversation begins. ${'It goes on about caches. '.repeat(16)}`
}

export const anySignal = (): AbortSignal => AbortSignal.timeout(20_000)

/** One whole turn, as the gateway takes it. */
export interface ServedTurn {
  readonly attached: AttachOutcome
  readonly usage: TestUsage
  readonly offloaded: OffloadOutcome
  /** What the session has stored after the turn. */
  readonly kv: StoredKv | undefined
}

export const serveTurn = async (
  connector: KvConnector,
  request: {
    readonly session: TestSession
    readonly pod: TestPod
    readonly prompt: string
    readonly kv?: StoredKv | undefined
  },
): Promise<ServedTurn> => {
  const { session, pod, prompt, kv } = request
  const turn = turnOf(session, pod)
  const attached = await connector.attach(turn, kv, anySignal())
  const usage = await pod.run({ prompt, sessionId: session.id, fields: attached.fields })
  const offloaded = await connector.offload({
    turn,
    claim: attached.claim,
    totalTokens: usage.promptTokens + usage.outputTokens,
    announce: async () => {},
    signal: anySignal(),
  })
  return { attached, usage, offloaded, kv: storedKv(offloaded) ?? kv }
}

export const storedKv = (offloaded: OffloadOutcome): StoredKv | undefined =>
  offloaded.kind === 'stored'
    ? {
        artefactId: offloaded.artefactId,
        payload: offloaded.payload,
        tokens: offloaded.tokens,
        bytes: offloaded.bytes,
        turn: 1,
      }
    : undefined
