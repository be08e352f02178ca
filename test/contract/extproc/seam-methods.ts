import { EventEmitter, once } from 'node:events'
import type { RpcCall, RpcMethod, RpcReceiver, RpcStatus } from '../../../src/extproc/transport.ts'

/** What the methods below saw, to wait for. */
export interface SeamLog {
  readonly events: readonly string[]
  note(event: string): void
  /** Resolves once `event` was noted `count` times. */
  noted(event: string, count?: number): Promise<void>
}

export const createSeamLog = (): SeamLog => {
  const emitter = new EventEmitter()
  emitter.setMaxListeners(0)
  const events: string[] = []
  const has = (event: string, count: number): boolean => events.filter((noted) => noted === event).length >= count
  return {
    events,
    note: (event) => {
      events.push(event)
      emitter.emit('note')
    },
    noted: async (event, count = 1) => {
      while (!has(event, count)) await once(emitter, 'note')
    },
  }
}

type Text = RpcMethod<string, string>

/** Small methods on text, one for each thing that a transport must carry. */
export const createSeamMethods = (log: SeamLog): readonly Text[] => [
  method('Echo', (call) => ({ message: (text) => call.send(text), halfClosed: () => call.end({ code: 'ok' }) })),
  method('Fail', (call) => ({ message: (text) => failWith(call, text) })),
  method('Hold', (call) => ({
    message: (text) => {
      log.note(`hold ${text}`)
      call.send(text)
    },
    halfClosed: () => log.note('hold half-closed'),
    closed: () => {
      log.note('hold closed')
      call.send('late')
      call.end({ code: 'ok' })
    },
  })),
  method('AnswerAtEnd', (call) => {
    const texts: string[] = []
    return {
      message: (text) => texts.push(text),
      halfClosed: () => {
        call.send(texts.join())
        call.end({ code: 'ok' })
      },
    }
  }),
  method('Flood', (call) => ({
    message: () => {
      for (let message = 0; message < floodMessages; message++) call.send('x'.repeat(50_000))
    },
    closed: () => log.note('flood closed'),
  })),
  method('Throw', () => ({
    message: () => {
      throw new Error('method failed')
    },
  })),
  { ...method('BadDecode', () => ({})), decode: () => fail('decode failed') },
  { ...method('BadEncode', (call) => ({ message: (text) => call.send(text) })), encode: () => fail('encode failed') },
  { ...method('Stay', (call) => ({ message: (text) => call.send(text) })), longLived: true },
]

/** More than any connection takes from a peer that does not read. */
const floodMessages = 400

/** Path of a method above. */
export const pathOf = (name: string): string => `/test.Seam/${name}`

const method = (name: string, open: (call: RpcCall<string>) => Partial<RpcReceiver<string>>): Text => ({
  path: pathOf(name),
  longLived: false,
  decode: (bytes) => bytes.toString(),
  encode: (text) => Buffer.from(text),
  open: (call) => ({ message: () => {}, halfClosed: () => {}, closed: () => {}, ...open(call) }),
})

const failWith = (call: RpcCall<string>, code: string): void => {
  call.send('before')
  call.end({ code: code as Exclude<RpcStatus['code'], 'ok'>, message: `ended with ${code}` })
  call.send('after')
}

const fail = (message: string): never => {
  throw new Error(message)
}
