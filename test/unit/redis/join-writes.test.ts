import { Writable } from 'node:stream'
import { describe, expect, test } from '@jest/globals'
import { createWriteJoiner } from '../../../src/redis/join-writes.ts'

/** Keeps what each write to the other end carried. */
const createSink = (): { readonly stream: Writable; readonly writes: string[] } => {
  const writes: string[] = []
  const keep = (chunks: readonly { readonly chunk: Buffer }[]): void =>
    void writes.push(chunks.map(({ chunk }) => String(chunk)).join(''))
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      keep([{ chunk }])
      done()
    },
    writev: (chunks, done) => {
      keep(chunks)
      done()
    },
  })
  return { stream, writes }
}

const afterThisTick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('commands of one turn of the event loop', () => {
  test.each([
    { name: 'one goes alone', commands: 'a', expected: ['a'] },
    { name: 'a few go together', commands: 'abc', expected: ['abc'] },
    { name: 'many go eight at a time', commands: 'abcdefghijklmnopqrs', expected: ['abcdefgh', 'ijklmnop', 'qrs'] },
    { name: 'eight go together', commands: 'abcdefgh', expected: ['abcdefgh'] },
  ])('$name', async ({ commands, expected }) => {
    const { stream, writes } = createSink()
    const join = createWriteJoiner()
    for (const command of commands) {
      join(stream)
      stream.write(command)
    }
    await afterThisTick()

    expect(writes).toEqual(expected)
  })

  test('the commands of two turns go apart', async () => {
    const { stream, writes } = createSink()
    const join = createWriteJoiner()
    for (const command of ['a', 'b']) {
      join(stream)
      stream.write(command)
      await afterThisTick()
    }

    expect(writes).toEqual(['a', 'b'])
  })

  test('a new connection takes over at once, and nothing stays in the old one', async () => {
    const [first, second] = [createSink(), createSink()]
    const join = createWriteJoiner()
    join(first.stream)
    first.stream.write('a')
    join(second.stream)
    second.stream.write('b')
    await afterThisTick()

    expect([first.writes, second.writes]).toEqual([['a'], ['b']])
  })
})
