import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals'
import { type RunningEngine, startEngine } from '../../../playground/start-engine.ts'
import { type ObjectServer, startObjectServer } from '../../support/object-server.ts'
import { cacheLine, createdId, metric, podChanges, prompt, remove, untilStored, use, view } from '../faults/support.ts'
import { model } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Stack, startStack } from '../support/stack.ts'

jest.setTimeout(90_000)

const body = (words: number) => ({ model, prompt: prompt(words), max_tokens: 2 })

interface PodOptions {
  readonly contextTokens?: number
  readonly arguments?: readonly string[]
}

/** One pod, so that KV that is not in it any more can only come from the store. */
class Pod {
  #engine: RunningEngine | undefined
  #kvDirectory = ''

  async start(kvDirectory: string, options: PodOptions = {}) {
    this.#kvDirectory = kvDirectory
    this.#engine = await startEngine({
      name: 'pod',
      kvDirectory,
      port: this.#engine === undefined ? undefined : Number(new URL(this.#engine.url).port),
      slots: 4,
      contextTokensPerSlot: options.contextTokens ?? 4096,
      extraArguments: ['--log-level', 'warn', ...(options.arguments ?? [])],
    })
    return this.#engine
  }

  /** Ends the process, and with it what it held in memory; starts another one under the same address. */
  async restart(stack: Stack, options: PodOptions = {}) {
    const address = this.#engine?.address ?? ''
    const before = podChanges(stack, 'ready', address)
    await this.#engine?.child.kill()
    await eventually(() => expect(podChanges(stack, 'failing', address)).toBeGreaterThan(0))
    await this.start(this.#kvDirectory, options)
    await eventually(() => expect(podChanges(stack, 'ready', address)).toBeGreaterThan(before))
  }

  async stop(): Promise<void> {
    await this.#engine?.child.kill()
  }
}

const fastSweeps = {
  CTX_ROUTING_HEALTH_INTERVAL_MS: '100',
  CTX_KV_CALL_TIMEOUT_MS: '2000',
  CTX_REAPER_ANNOUNCE_GRACE_MS: '2100',
}

const startPodStack = async (env: Record<string, string>, store: 'memory' | 'redis' = 'memory') => {
  const pod = new Pod()
  const stack = await startStack({
    store,
    pods: async (kvDirectory) => [await pod.start(kvDirectory)],
    env: { ...fastSweeps, ...env },
  })
  return { pod, stack }
}

/** What a session of so many words stores, by its own account. */
const storedSession = async (stack: Stack, words: number) => {
  const id = await createdId(stack, { body: body(words) })
  const { kv } = await untilStored(stack, id, 1)
  return { id, bytes: kv.stored?.bytes ?? 0 }
}

const flipByte = async (path: string): Promise<void> => {
  const file = await open(path, 'r+')
  const { size } = await file.stat()
  const byte = Buffer.alloc(1)
  await file.read(byte, 0, 1, Math.floor(size / 2))
  await file.write(Buffer.of((byte[0] ?? 0) ^ 1), 0, 1, Math.floor(size / 2))
  await file.close()
}

const noFiles = (stack: Stack) => eventually(async () => expect(await stack.kvFiles()).toEqual([]))

describe('stored KV on disk', () => {
  let stack: Stack
  let pod: Pod
  beforeAll(async () => {
    ;({ stack, pod } = await startPodStack({}, 'redis'))
  }, 120_000)
  afterAll(async () => {
    await stack?.stop()
    await pod?.stop()
  }, 30_000)

  test('restarted engine loads KV instead of computing it', async () => {
    const { id } = await storedSession(stack, 200)
    await pod.restart(stack)
    const answer = await use(stack, id, { body: body(200) })
    expect(cacheLine(answer)).toMatch(/^hit; tier=store; tokens=\d+; load=\d+ms$/)
    expect(answer.body).toMatchObject({ usage: { prompt_tokens_details: { cached_tokens: expect.any(Number) } } })
    await remove(stack, id)
    await noFiles(stack)
  })

  test('each artefact is one file with a name derived from SHA-256 of its identity', async () => {
    const { id, bytes } = await storedSession(stack, 40)
    const files = await stack.kvFiles()
    expect(files).toEqual([expect.stringMatching(/^ctx-[\w-]{22}[0-9a-f]{28}\.kv$/)])
    expect((await stat(join(stack.kvDirectory, files[0] ?? ''))).size).toBe(bytes)
    await remove(stack, id)
    await noFiles(stack)
  })

  test('flipped bit makes a miss on reload, and the file is removed', async () => {
    const { id } = await storedSession(stack, 60)
    const [damaged = ''] = await stack.kvFiles()
    await flipByte(join(stack.kvDirectory, damaged))
    await pod.restart(stack)
    expect(cacheLine(await use(stack, id, { body: body(60) }))).toBe('miss; reason=kv_missing')
    await eventually(async () => expect(await stack.kvFiles()).not.toContain(damaged))
    await untilStored(stack, id, 2)
    await remove(stack, id)
    await noFiles(stack)
  })

  test('change of an unrelated setting keeps the KV', async () => {
    const { id } = await storedSession(stack, 60)
    await pod.restart(stack, { arguments: ['--log-level', 'info'] })
    await eventually(async () => expect(await stack.kvFiles()).toHaveLength(1))
    expect(cacheLine(await use(stack, id, { body: body(60) }))).toMatch(/^hit; tier=store; /)
    await untilStored(stack, id, 2)
    await remove(stack, id)
    await noFiles(stack)
  })

  test('change of a setting that the KV depends on removes it, and the next turn reports the miss', async () => {
    const { id } = await storedSession(stack, 60)
    await pod.restart(stack, { contextTokens: 2048 })
    await noFiles(stack)
    expect((await view(stack, id)).kv).toMatchObject({ stored: null, note: 'kv_stale' })
    expect(await metric(stack, 'kv_evictions_total', { reason: 'stale' })).toBe(1)
    expect(cacheLine(await use(stack, id, { body: body(60) }))).toBe('miss; reason=kv_stale')
    await untilStored(stack, id, 2)
    await remove(stack, id)
    await pod.restart(stack)
    await noFiles(stack)
  })
})

describe.each([{ store: 'memory' }, { store: 'redis' }] as const)('size limit with sessions in $store', ({ store }) => {
  let stack: Stack
  let pod: Pod
  let pieceBytes = 0
  let sessions: string[] = []
  beforeAll(async () => {
    const probe = await startPodStack({})
    pieceBytes = (await storedSession(probe.stack, 100)).bytes
    await probe.stack.stop()
    await probe.pod.stop()
    // Room for three such pieces below the threshold, and for four at all.
    ;({ stack, pod } = await startPodStack({ CTX_KV_MAX_STORE_BYTES: String(Math.round(pieceBytes * 4.2)) }, store))
  }, 180_000)
  afterEach(async () => {
    await Promise.all(sessions.map((id) => remove(stack, id)))
    sessions = []
    await noFiles(stack)
  })
  afterAll(async () => {
    await stack?.stop()
    await pod?.stop()
  }, 30_000)

  const newSession = async (words = 100): Promise<string> => {
    const { id } = await storedSession(stack, words)
    sessions.push(id)
    return id
  }

  test('least recently used artefact is evicted with its file, and its session continues with a miss', async () => {
    const [first, second, third] = [await newSession(), await newSession(), await newSession()]
    await use(stack, first, { body: body(100) })
    await untilStored(stack, first, 2)
    await newSession()
    await eventually(async () => expect(await stack.kvFiles()).toHaveLength(3))
    expect((await view(stack, second)).kv).toMatchObject({ stored: null, note: 'kv_evicted' })
    expect((await view(stack, third)).kv.stored).not.toBeNull()
    expect(await metric(stack, 'kv_stored_bytes')).toBeLessThanOrEqual(0.85 * 4.2 * pieceBytes)
    expect(await metric(stack, 'kv_evictions_total', { reason: 'size' })).toBe(1)

    await pod.restart(stack)
    expect(cacheLine(await use(stack, second, { body: body(100) }))).toBe('miss; reason=kv_evicted')
    await untilStored(stack, second, 2)
  })

  test('artefact larger than the limit is not stored, with a warning and without an error', async () => {
    const id = await createdId(stack, { body: body(400) })
    sessions.push(id)
    await eventually(async () => expect((await view(stack, id)).kv).toMatchObject({ stored: null, note: 'too_large' }))
    expect(await stack.kvFiles()).toEqual([])
    expect(stack.output()).toContain('KV is larger than the store takes')
    await pod.restart(stack)
    const answer = await use(stack, id, { body: body(400) })
    expect([answer.status, cacheLine(answer)]).toEqual([200, 'none; reason=too_large'])
    await eventually(async () => expect((await view(stack, id)).turns).toBe(2))
  })
})

describe('store module', () => {
  let stack: Stack
  let pod: Pod
  let server: ObjectServer
  beforeAll(async () => {
    server = await startObjectServer()
    const storeModule = fileURLToPath(new URL('../../../examples/http-artefact-store.mjs', import.meta.url))
    ;({ stack, pod } = await startPodStack({ CTX_KV_STORE_MODULE: storeModule, ARTEFACT_STORE_URL: server.url }))
  }, 120_000)
  afterAll(async () => {
    await stack?.stop()
    await pod?.stop()
    await server?.close()
  }, 30_000)

  const folder = () => readdir(stack.kvDirectory)
  const gone = (id: string) =>
    eventually(async () => {
      await remove(stack, id)
      expect([...server.objects.keys()]).toEqual([])
    })

  test('KV lies in the store between turns, and in the engines’ folder only during transfers', async () => {
    const { id, bytes } = await storedSession(stack, 100)
    expect([...server.objects.values()].map((object) => object.length)).toEqual([bytes])
    expect(await folder()).toEqual([])

    await pod.restart(stack)
    expect(cacheLine(await use(stack, id, { body: body(100) }))).toMatch(/^hit; tier=store; /)
    await untilStored(stack, id, 2)
    await eventually(async () => expect(server.objects.size).toBe(1))
    expect(await folder()).toEqual([])
    await gone(id)
  })

  test('KV that the store changed is a miss', async () => {
    const { id } = await storedSession(stack, 100)
    const [[name, object] = ['', Buffer.alloc(0)]] = server.objects
    server.objects.set(name, Buffer.concat([object.subarray(0, 1000), Buffer.from('?'), object.subarray(1001)]))
    await pod.restart(stack)
    expect(cacheLine(await use(stack, id, { body: body(100) }))).toBe('miss; reason=kv_missing')
    await untilStored(stack, id, 2)
    expect(await folder()).toEqual([])
    await gone(id)
  })

  test('object lost by the store is a miss', async () => {
    const { id } = await storedSession(stack, 100)
    server.objects.clear()
    await pod.restart(stack)
    expect(cacheLine(await use(stack, id, { body: body(100) }))).toBe('miss; reason=kv_missing')
    await untilStored(stack, id, 2)
    await gone(id)
  })

  test('failing store fails loads and offloads but no turn, and removals are retried', async () => {
    const { id } = await storedSession(stack, 100)
    await pod.restart(stack)
    server.failWith(503)
    const answer = await use(stack, id, { body: body(100) })
    expect([answer.status, cacheLine(answer)]).toEqual([200, 'miss; reason=load_failed'])
    const other = await createdId(stack, { body: body(50) })
    await eventually(async () => expect((await view(stack, other)).kv.note).toBe('offload_failed'))
    await Promise.all([id, other].map((session) => remove(stack, session)))
    expect(server.objects.size).toBe(1)
    server.failWith(undefined)
    await eventually(() => expect(server.objects.size).toBe(0))
    expect(await folder()).toEqual([])
  })
})
