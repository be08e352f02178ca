import { mkdtemp, readdir, rm, stat, truncate } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ManagedChild } from '../../../playground/child-process.ts'
import { randomModelPath } from '../../../playground/engine/random-model.ts'
import { freePorts } from '../../../playground/free-port.ts'
import type { KvCache } from '../../../src/kvcache/kv-cache.ts'
import { createLlamacppSlotsConnector } from '../../../src/kvcache/llamacpp-slots/connector.ts'
import type { SlotLedger } from '../../../src/kvcache/slots/slot-ledger.ts'
import {
  inGateway,
  type KvTestBed,
  type KvTraits,
  more,
  newPrompt,
  type TestPod,
} from '../../contract/kvcache/kv-test-bed.ts'
import { connectorParts } from '../../support/connector-parts.ts'
import { eventually } from '../../support/eventually.ts'
import { call, post } from '../support/client.ts'
import { flipByte } from '../support/flip-byte.ts'
import { type HoldingProxy, startHoldingProxy } from './holding-proxy.ts'

export const slotsPerPod = 2
export const contextTokensPerSlot = 32_768

/** How to start one engine of a kind. */
export type StartSlotEngine = (options: {
  readonly name: string
  readonly port: number
  readonly modelPath: string
  readonly kvDirectory: string
}) => Promise<ManagedChild>

export interface SlotPod extends TestPod {
  readonly proxy: HoldingProxy
  readonly child: () => ManagedChild
  /** Makes a slot busy with a request without a session; `end` resolves when the engine calls the slot idle again. */
  occupy(slot: number): Promise<{ end(): Promise<void> }>
  /** The ids of a text's tokens. */
  tokenize(text: string): Promise<readonly number[]>
  slots(): Promise<readonly { readonly id: number; readonly is_processing: boolean }[]>
}

/** A slot holds one session at a time; its file, with a checksum at the connector, holds the whole conversation. */
export const slotTraits: KvTraits = {
  storesElsewhere: true,
  loadedBy: 'gateway',
  sharing: 'session',
  damage: ['changed', 'cut'],
  sweeps: true,
}

/** Two engines that share one folder; every test gets a bed of its own on them. */
export interface SlotEngines {
  readonly pods: readonly [SlotPod, SlotPod]
  readonly kvDirectory: string
  bed(makeLedger: () => Promise<SlotLedger>): Promise<SlotsTestBed>
  end(): Promise<void>
}

export interface SlotsTestBed extends KvTestBed {
  readonly pods: readonly [SlotPod, SlotPod]
  readonly ledger: SlotLedger
  readonly kvDirectory: string
  connect(options?: {
    readonly callTimeoutMs?: number
    readonly pods?: readonly string[]
    readonly orphanGraceMs?: number
    readonly modelVersion?: string
  }): KvCache
}

export const startSlotEngines = async (start: StartSlotEngine): Promise<SlotEngines> => {
  const root = await mkdtemp(join(tmpdir(), 'slots-'))
  const kvDirectory = join(root, 'kv')
  const modelPath = await randomModelPath(root, 'bytes', { hiddenSize: 64, layers: 2, heads: 1, feedForwardSize: 128 })
  const [firstPort = 0, secondPort = 0] = await freePorts(2)
  const startOn = (name: string, port: number) =>
    startPod(name, port, () => start({ name, port, modelPath, kvDirectory }))
  const pods = await Promise.all([startOn('pod-0', firstPort), startOn('pod-1', secondPort)])
  return {
    pods,
    kvDirectory,
    bed: (makeLedger) => makeBed({ pods, kvDirectory, makeLedger }),
    end: async () => {
      await Promise.all(pods.flatMap((pod) => [pod.child().kill(), pod.proxy.close()]))
      await rm(root, { recursive: true, force: true })
    },
  }
}

const startPod = async (name: string, port: number, start: () => Promise<ManagedChild>): Promise<SlotPod> => {
  let child = await start()
  const proxy = await startHoldingProxy({ port })
  const url = `http://127.0.0.1:${port}`
  const complete = async (body: object, headers: Record<string, string> = {}) => {
    const response = await call(`${url}/v1/completions`, {
      headers,
      body: { model: 'tiny', max_tokens: 4, temperature: 0, ignore_eos: true, ...body },
    })
    if (response.status !== 200) throw new Error(`${name} responded ${response.status}: ${response.text}`)
    const { usage } = response.body as EngineResponse
    return {
      promptTokens: usage.prompt_tokens,
      outputTokens: usage.completion_tokens,
      cachedTokens: usage.prompt_tokens_details.cached_tokens,
    }
  }
  const slots: SlotPod['slots'] = async () => (await call(`${url}/slots`)).body as Awaited<ReturnType<SlotPod['slots']>>
  const isBusy = async (slot: number): Promise<boolean> =>
    (await slots()).some(({ id, is_processing }) => id === slot && is_processing)
  return {
    tokenize: async (text) =>
      ((await call(`${url}/tokenize`, { body: { content: text } })).body as { readonly tokens: readonly number[] })
        .tokens,
    slots,
    occupy: async (slot) => {
      const stop = new AbortController()
      const response = await post(`${url}/v1/completions`, { ...occupation, id_slot: slot }, { signal: stop.signal })
      await eventually(() => isBusy(slot))
      return {
        end: async () => {
          stop.abort()
          await response.body?.cancel().catch(() => {})
          // The engine notices between two tokens that the client has left; until then no turn finds room in the slot.
          await eventually(async () => !(await isBusy(slot)))
        },
      }
    },
    address: proxy.address,
    proxy,
    child: () => child,
    run: ({ prompt, sessionId, fields }) =>
      complete({ prompt, ...fields }, sessionId === undefined ? {} : { 'x-session-id': sessionId }),
    probe: async (prompt) => (await complete({ prompt, max_tokens: 1 })).cachedTokens,
    loads: () => proxy.restores(),
    holdLoads: () => proxy.hold(),
    restart: async () => {
      await child.kill()
      child = await start()
    },
  }
}

/** A response that takes longer than any test. */
const occupation = {
  model: 'tiny',
  prompt: 'On and on.',
  max_tokens: 30_000,
  ignore_eos: true,
  stream: true,
  temperature: 0,
}

interface EngineResponse {
  readonly usage: {
    readonly prompt_tokens: number
    readonly completion_tokens: number
    readonly prompt_tokens_details: { readonly cached_tokens: number }
  }
}

/** The pod, of which only later loads count. */
export const countingFromNow = <Pod extends TestPod>(pod: Pod): Pod => {
  const before = pod.loads()
  return { ...pod, loads: () => pod.loads() - before }
}

const makeBed = async (options: {
  readonly pods: readonly [SlotPod, SlotPod]
  readonly kvDirectory: string
  readonly makeLedger: () => Promise<SlotLedger>
}): Promise<SlotsTestBed> => {
  const { pods, kvDirectory, makeLedger } = options
  let ledger = await makeLedger()
  const next = await makeLedger()
  const caches: KvCache[] = []
  const fileOf = (artefactId: string): string => join(kvDirectory, `ctx-${artefactId}.kv`)
  return {
    pods: [countingFromNow(pods[0]), countingFromNow(pods[1])],
    get ledger() {
      return ledger
    },
    kvDirectory,
    newPrompt,
    more,
    connect: (wishes = {}) => {
      const cache = inGateway(
        createLlamacppSlotsConnector(
          {
            directory: kvDirectory,
            callTimeoutMs: wishes.callTimeoutMs ?? 10_000,
            minTokens: 16,
            modelVersion: wishes.modelVersion,
          },
          connectorParts({
            pods: () => wishes.pods ?? pods.map((pod) => pod.address),
            orphanGraceMs: wishes.orphanGraceMs ?? 0,
          }),
          { ledger },
        ),
      )
      caches.push(cache)
      return cache
    },
    artefacts: async () => (await readdir(kvDirectory)).flatMap((file) => /^ctx-([\w-]+)\.kv$/.exec(file)?.[1] ?? []),
    damage: async (artefactId, how) => {
      const path = fileOf(artefactId)
      if (how === 'cut') return truncate(path, (await stat(path)).size - 100)
      return flipByte(path)
    },
    loseState: () => {
      ledger = next
    },
    close: async () => {
      await Promise.all(caches.map((cache) => cache.close()))
      const files = await readdir(kvDirectory)
      await Promise.all(files.map((file) => rm(join(kvDirectory, file), { force: true })))
    },
  }
}
