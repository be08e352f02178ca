import { encode } from '@msgpack/msgpack'
import { createAccessLog } from '../../src/accesslog/access-log.ts'
import type { SlicedWork } from '../../src/async/slices.ts'
import { readNamedBody } from '../../src/context/named-prompt.ts'
import { createExtProcCodec } from '../../src/extproc/codec.ts'
import { maxJsonLength, readJson } from '../../src/json/read-json.ts'
import { decodeEvents } from '../../src/kvcache/kv-events/decode-events.ts'
import { readCreateBody } from '../../src/openai/create-body.ts'
import { parseJsonObject } from '../../src/openai/parse-json-object.ts'
import { namesOtherModel } from '../../src/openai/splice-body.ts'
import { createResponseCheck } from '../../src/responsecache/finished-response.ts'
import { field } from '../../test/unit/extproc/protobuf-bytes.ts'
import { median } from '../statistics.ts'
import { bodyOf, kindNames } from './bodies.ts'

/** A part of the gateway that reads bytes of others, and inputs as long as it takes them. */
interface Reader {
  readonly name: string
  readonly inputs: ReadonlyMap<string, Buffer>
  /** Whatever it reads at once is one step. */
  readonly read: (input: Buffer) => Iterable<unknown>
}

const rounds = 5
const pieceBytes = 65_536
const model = 'bench'
const jsonLimits = { maxJsonDepth: 64, maxJsonKeys: 20_000 }

const accessLog = createAccessLog({
  service: { endTurn: async () => {}, clientDisconnected: async () => {} },
  hooks: { entryMalformed: () => {}, fault: () => {} },
})
const codec = createExtProcCodec()

const bodies = (seed: number, bytes: number): ReadonlyMap<string, Buffer> =>
  new Map(kindNames.map((kind) => [kind, bodyOf(kind, { model, seed, bytes })]))

const filled = (bytes: number, part: Buffer): Buffer => Buffer.alloc(bytes, part)

const stepsOf = function* (work: SlicedWork<unknown>): Generator<undefined> {
  try {
    yield* work
  } catch {
    // A refusal is an answer, too.
  }
}

/** All of it is one step. */
const once = function* (read: () => unknown): Generator<undefined> {
  read()
  yield
}

const streamOf = (event: string, bytes: number): Buffer =>
  Buffer.from(`${event.repeat(Math.floor(bytes / event.length))}data: [DONE]\n\n`)

const readersFor = (seed: number, bytes: number): readonly Reader[] => [
  {
    name: 'ext_proc message, 64 KiB beside a body',
    inputs: new Map([
      ['headers', field(2, field(1, filled(65_000, field(1))))],
      ['empty bodies', field(4, filled(65_000, field(1)))],
      ['messages in one', filled(65_000, field(2))],
    ]),
    read: (input) => once(() => codec.decode(input)),
  },
  {
    name: 'access log batch, 32 KiB',
    inputs: new Map([
      ['records', field(1, field(2, filled(32_700, field(2))))],
      ['sources', filled(32_700, field(1))],
      ['separators', field(1, field(2, field(2, field(5, field(1, filled(32_700, Buffer.from('\u001f')))))))],
    ]),
    read: (input) => once(() => accessLog.answer(accessLog.decode(input))),
  },
  {
    name: `body of a create, ${bytes} bytes`,
    inputs: bodies(seed, bytes),
    read: (input) => stepsOf(readCreateBody(input, undefined, jsonLimits)),
  },
  {
    name: `body of a turn at the picker, ${bytes} bytes`,
    inputs: bodies(seed, bytes),
    read: (input) => stepsOf(namesOtherModel(input, 'another model')),
  },
  {
    name: `body of a turn by a client's name, ${bytes} bytes`,
    inputs: new Map([
      ...bodies(seed, bytes),
      ['contents', Buffer.from(`{"model":"m","messages":[${'{"content":"a"},'.repeat(bytes / 16)}{}]}`)],
      ['halves of a name', Buffer.from(`{"model":"m","messages":"${'conten'.repeat(bytes / 6)}"}`)],
    ]),
    read: (input) =>
      stepsOf(readNamedBody(input, { api: 'messages', kinds: ['body.prompt_cache_key'], limits: jsonLimits })),
  },
  {
    name: 'body of a PATCH, 64 KiB',
    inputs: bodies(seed, 65_536),
    read: (input) => stepsOf(parseJsonObject(input, { ...jsonLimits, maxBytes: 65_536 })),
  },
  {
    name: 'JSON of an engine, 256 KiB',
    inputs: bodies(seed, maxJsonLength),
    read: (input) => once(() => readJson(input.toString())),
  },
  {
    name: 'streamed answer for the response cache, pieces of 64 KiB',
    inputs: new Map([
      ['tokens', streamOf('data: {"choices":[{"index":0,"text":"a"}]}\n\n', 1_000_000)],
      ['usages', streamOf('data: {"usage":1}\n\n', 1_000_000)],
      ['empty events', streamOf('data:\n\n', 1_000_000)],
      ['blank lines', streamOf('\n', 1_000_000)],
    ]),
    read: function* (input) {
      const check = createResponseCheck('stream')
      for (let at = 0; at < input.length; at += pieceBytes) yield check.chunk(input.subarray(at, at + pieceBytes))
      check.end(input)
    },
  },
  {
    name: 'KV events, 8 MiB',
    inputs: new Map([
      ['one turn of 350,000 tokens', batchOf([reportOf(350_000)])],
      ['many turns', batchOf(Array.from({ length: 5_000 }, () => reportOf(16)))],
      ['empty events', batchOf(Array.from({ length: 200_000 }, () => ({})))],
    ]),
    read: (input) => stepsOf(decodeEvents(input)),
  },
]

const batchOf = (events: readonly object[]): Buffer => Buffer.from(encode([1, events]))

const reportOf = (tokens: number): object => ({
  type: 'BlockStored',
  session_id: 'turn',
  parent_block_hash: null,
  block_hashes: Array.from({ length: tokens / 16 }, () => Buffer.alloc(32)),
  token_ids: Array.from({ length: tokens }, (_, at) => at),
  block_size: 16,
  extra_keys: Array.from({ length: tokens / 16 }, () => null),
})

const longestStepMs = (steps: Iterator<unknown>): number => {
  let longest = 0
  for (let isDone: boolean | undefined = false; isDone !== true; ) {
    const before = performance.now()
    isDone = steps.next().done
    longest = Math.max(longest, performance.now() - before)
  }
  return longest
}

/** The longest time for which each reader holds the event loop, by the worst of its inputs: the median of some rounds. */
export const measureReaders = (seed: number, bytes: number) =>
  readersFor(seed, bytes).map(({ name, inputs, read }) => {
    const measured = [...inputs].map(([kind, input]) => {
      const longest = Array.from({ length: rounds + 1 }, () => longestStepMs(read(input)[Symbol.iterator]()))
      // The first round also compiles.
      return { kind, ms: median(longest.slice(1)) }
    })
    const [worst] = measured.sort((a, b) => b.ms - a.ms)
    return { name, kind: worst?.kind ?? '', ms: worst?.ms ?? Number.NaN }
  })
