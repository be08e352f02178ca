import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { Redis } from 'ioredis'
import { type RunningEngine, startEngine } from '../../../playground/start-engine.ts'
import { markerFile } from '../../../src/kvcache/llamacpp-slots/folder-owner.ts'
import { eventually } from '../../support/eventually.ts'
import { type ObjectServer, startObjectServer } from '../../support/object-server.ts'
import { call, model } from '../support/client.ts'
import { isReady, metric } from '../support/metrics.ts'
import {
  cacheLine,
  createdId,
  look,
  prompt,
  remove,
  storedSession,
  untilStored,
  use,
  view,
} from '../support/sessions.ts'
import type { StackPod } from '../support/stack.ts'
import { useStack } from '../support/use-stack.ts'

const body = (words: number) => ({ model, prompt: prompt(words), max_tokens: 2 })

interface PodOptions {
  readonly contextTokens?: number
  readonly arguments?: readonly string[]
}

const slots = 4

/** One pod, so that KV that is not in it any more can only come from the store. */
class Pod implements StackPod {
  #engine: RunningEngine | undefined
  #kvDirectory = ''

  get address(): string {
    return this.#engine?.address ?? ''
  }

  async start(kvDirectory: string, options: PodOptions = {}): Promise<this> {
    this.#kvDirectory = kvDirectory
    this.#engine = await startEngine({
      name: 'pod',
      kvDirectory,
      port: this.#engine === undefined ? undefined : Number(new URL(this.#engine.url).port),
      slots,
      contextTokensPerSlot: options.contextTokens ?? 4096,
      extraArguments: ['--log-level', 'warn', ...(options.arguments ?? [])],
    })
    return this
  }

  /** Ends the process, and with it what it held in memory; starts another one under the same address. */
  async restart(options: PodOptions = {}): Promise<void> {
    await this.stop()
    await eventually(() => !isReady(stack, this.address))
    await this.start(this.#kvDirectory, options)
    await eventually(() => isReady(stack, this.address))
  }

  /** Empties all slots: what the pod held in memory is gone, sooner than by a restart. */
  async erase(): Promise<void> {
    for (let slot = 0; slot < slots; slot += 1) {
      const { status } = await call(`http://${this.address}/slots/${slot}?action=erase`, { body: {} })
      expect(status).toBe(200)
    }
  }

  async stop(): Promise<void> {
    await this.#engine?.child.kill()
  }
}

const pod = new Pod()
const stack = useStack({
  store: 'redis',
  pods: async (kvDirectory) => [await pod.start(kvDirectory)],
  env: {
    CTX_ROUTING_HEALTH_INTERVAL_MS: '100',
    CTX_KV_CALL_TIMEOUT_MS: '2000',
    CTX_REAPER_ANNOUNCE_GRACE_MS: '2100',
    CTX_REAPER_REMOVAL_LEASE_MS: '2100',
  },
})

/** Starts the gateway again, with these options besides those of the stack. */
const reconfigure = async (env: Readonly<Record<string, string>>): Promise<void> => {
  await stack.gateway().child.stop()
  await stack.restartGateway(0, env)
}

/** A session of so many words, and what it stores by its own account. */
const sizedSession = async (words: number) => {
  const id = await storedSession(stack, { body: body(words) })
  return { id, bytes: (await view(stack, id)).kv.stored?.bytes ?? 0 }
}

const noFiles = () => eventually(async () => expect(await stack.kvFiles()).toEqual([]))

describe('stored KV on disk', () => {
  test('each artefact is one file with a name derived from SHA-256 of its identity', async () => {
    const { id, bytes } = await sizedSession(12)
    const files = await stack.kvFiles()
    expect(files).toEqual([expect.stringMatching(/^ctx-[\w-]{22}[0-9a-f]{28}\.kv$/)])
    expect((await stat(join(stack.kvDirectory, files[0] ?? ''))).size).toBe(bytes)
    await remove(stack, id)
    await noFiles()
  })

  test('change of an unrelated setting keeps the KV', async () => {
    const { id } = await sizedSession(15)
    await pod.restart({ arguments: ['--log-level', 'info'] })
    await eventually(async () => expect(await stack.kvFiles()).toHaveLength(1))
    expect(cacheLine(await use(stack, id, { body: body(15) }))).toMatch(/^hit; tier=store; /)
    await untilStored(stack, id, 2)
    await remove(stack, id)
    await noFiles()
  })

  test('change of a setting that the KV depends on removes it, and the next turn reports the miss', async () => {
    const { id } = await sizedSession(15)
    await pod.restart({ contextTokens: 2048 })
    await noFiles()
    expect((await view(stack, id)).kv).toMatchObject({ stored: null, note: 'kv_stale' })
    expect(await metric(stack, 'kv_evictions_total', { reason: 'stale' })).toBe(1)
    expect(cacheLine(await use(stack, id, { body: body(15) }))).toBe('miss; reason=kv_stale')
    await untilStored(stack, id, 2)
    await remove(stack, id)
    await pod.restart()
    await noFiles()
  })

  test('after Redis forgot everything a turn is a miss, and nothing of the sessions stays', async () => {
    const sessions = [await sizedSession(15), await sizedSession(15)]
    expect(await stack.kvFiles()).toHaveLength(2)
    const redis = new Redis(stack.redis?.url ?? '', { protocol: 2 })
    await redis.flushall()
    redis.disconnect()

    const responses = await Promise.all(sessions.map(({ id }) => use(stack, id, { body: body(15) })))
    expect(responses.map(({ status }) => status)).toEqual([200, 200])
    expect(responses.map(cacheLine)).toEqual(Array(2).fill('miss; reason=session_not_found'))
    expect((await look(stack, sessions[0]?.id ?? '')).status).toBe(404)
    await noFiles()
  })
})

describe('size limit', () => {
  let pieceBytes = 0
  let sessions: string[] = []
  beforeAll(async () => {
    const piece = await sizedSession(18)
    pieceBytes = piece.bytes
    await remove(stack, piece.id)
    await noFiles()
    // Room for three such pieces below the threshold, and for four at all.
    await reconfigure({ CTX_KV_MAX_STORE_BYTES: String(Math.round(pieceBytes * 4.2)) })
  })
  afterEach(async () => {
    await Promise.all(sessions.map((id) => remove(stack, id)))
    sessions = []
    await noFiles()
  })

  const newSession = async (words = 18): Promise<string> => {
    const { id } = await sizedSession(words)
    sessions.push(id)
    return id
  }

  test('least recently used artefact is evicted with its file, and its session continues with a miss', async () => {
    const [first, second, third] = [await newSession(), await newSession(), await newSession()]
    await use(stack, first, { body: body(18) })
    await untilStored(stack, first, 2)
    await newSession()
    await eventually(async () => expect(await stack.kvFiles()).toHaveLength(3))
    expect((await view(stack, second)).kv).toMatchObject({ stored: null, note: 'kv_evicted' })
    expect((await view(stack, third)).kv.stored).not.toBeNull()
    expect(await metric(stack, 'kv_stored_bytes')).toBeLessThanOrEqual(0.85 * 4.2 * pieceBytes)
    expect(await metric(stack, 'kv_evictions_total', { reason: 'size' })).toBe(1)

    await pod.erase()
    expect(cacheLine(await use(stack, second, { body: body(18) }))).toBe('miss; reason=kv_evicted')
    await untilStored(stack, second, 2)
  })

  test('artefact larger than the limit is not stored, with a warning and without an error', async () => {
    const id = await createdId(stack, { body: body(101) })
    sessions.push(id)
    await eventually(async () => expect((await view(stack, id)).kv).toMatchObject({ stored: null, note: 'too_large' }))
    expect(await stack.kvFiles()).toEqual([])
    expect(stack.output()).toContain('KV is larger than the store takes')
    await pod.erase()
    const response = await use(stack, id, { body: body(101) })
    expect([response.status, cacheLine(response)]).toEqual([200, 'none; reason=too_large'])
    await eventually(async () => expect((await view(stack, id)).turns).toBe(2))
  })
})

describe('store module', () => {
  let server: ObjectServer
  beforeAll(async () => {
    server = await startObjectServer()
    const storeModule = fileURLToPath(new URL('../../../examples/http-artefact-store.mjs', import.meta.url))
    await reconfigure({ CTX_KV_STORE_MODULE: storeModule, ARTEFACT_STORE_URL: server.url })
  })
  afterAll(() => server?.close())

  const folder = async () => (await readdir(stack.kvDirectory)).filter((name) => name !== markerFile)
  const gone = (id: string) =>
    eventually(async () => {
      await remove(stack, id)
      expect([...server.objects.keys()]).toEqual([])
    })

  test('KV lies in the store between turns, and in the engines’ folder only during transfers', async () => {
    const { id, bytes } = await sizedSession(18)
    expect([...server.objects.values()].map((object) => object.length)).toEqual([bytes])
    expect(await folder()).toEqual([])

    await pod.erase()
    expect(cacheLine(await use(stack, id, { body: body(18) }))).toMatch(/^hit; tier=store; /)
    await untilStored(stack, id, 2)
    await eventually(async () => expect(server.objects.size).toBe(1))
    expect(await folder()).toEqual([])
    await gone(id)
  })

  test('KV that the store changed is a miss', async () => {
    const { id } = await sizedSession(18)
    const [[name, object] = ['', Buffer.alloc(0)]] = server.objects
    server.objects.set(name, Buffer.concat([object.subarray(0, 1000), Buffer.from('?'), object.subarray(1001)]))
    await pod.erase()
    expect(cacheLine(await use(stack, id, { body: body(18) }))).toBe('miss; reason=kv_missing')
    await untilStored(stack, id, 2)
    expect(await folder()).toEqual([])
    await gone(id)
  })

  test('failing store fails loads and offloads but no turn, and removals are retried', async () => {
    const { id } = await sizedSession(18)
    await pod.erase()
    server.failWith(503)
    const response = await use(stack, id, { body: body(18) })
    expect([response.status, cacheLine(response)]).toEqual([200, 'miss; reason=load_failed'])
    const other = await createdId(stack, { body: body(14) })
    await eventually(async () => expect((await view(stack, other)).kv.note).toBe('offload_failed'))
    await Promise.all([id, other].map((session) => remove(stack, session)))
    expect(server.objects.size).toBe(1)
    server.failWith(undefined)
    await eventually(() => expect(server.objects.size).toBe(0))
    expect(await folder()).toEqual([])
  })
})
