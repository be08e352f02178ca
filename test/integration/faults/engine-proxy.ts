import { request as httpRequest } from 'node:http'
import { startEngine } from '../../../playground/start-engine.ts'
import { createLatch } from '../../support/latch.ts'
import type { PodReply, RecordedRequest } from '../support/pod-script.ts'
import { type ScriptedPod, startScriptedPod } from '../support/scripted-pod.ts'
import type { StackPod } from '../support/stack.ts'

/** What happens to a request caught on its way to the engine. `passOn` hands it over, until its answer has ended. */
export type Interception = (request: RecordedRequest, reply: PodReply, passOn: () => Promise<void>) => unknown

/** A real pod behind a wire that the test can disturb. */
export interface EngineProxy extends StackPod {
  /** The engine itself, past the wire. */
  readonly engineUrl: string
  /** What the gateway and Envoy see. */
  readonly pod: ScriptedPod
  /** Lines such as `POST /slots/0?action=save` of what came over the wire, in their order. */
  seen(): readonly string[]
  /** Holds every request whose line matches until `release` is called. `begun` resolves at the first. */
  hold(pattern: RegExp): { readonly begun: Promise<void>; readonly release: () => void }
  /** Catches every request whose line begins like this, until the returned function is called. */
  intercept(beginning: RegExp, interception: Interception): () => void
}

interface EngineProxyOptions {
  readonly kvDirectory: string
  readonly slots: number
}

export const startEngineProxies = ({
  count,
  ...options
}: EngineProxyOptions & { readonly count: number }): Promise<readonly EngineProxy[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => startEngineProxy({ name: `pod-${index}`, ...options })))

const startEngineProxy = async (options: EngineProxyOptions & { readonly name: string }): Promise<EngineProxy> => {
  const engine = await startEngine({
    ...options,
    contextTokensPerSlot: 32_768,
    extraArguments: ['--log-level', 'warn'],
  })
  const lines: string[] = []
  const rules: { readonly beginning: RegExp; readonly interception: Interception }[] = []
  const [, enginePort] = engine.address.split(':')

  const pod = await startScriptedPod(async (request, reply) => {
    const line = `${request.method} ${request.path}`
    lines.push(line)
    const passOn = (): Promise<void> => forward(Number(enginePort), request, reply)
    const rule = rules.find(({ beginning }) => beginning.test(line))
    await (rule === undefined ? passOn() : rule.interception(request, reply, passOn))
    return true
  })
  const intercept: EngineProxy['intercept'] = (beginning, interception) => {
    const rule = { beginning, interception }
    rules.push(rule)
    return () => {
      if (rules.includes(rule)) rules.splice(rules.indexOf(rule), 1)
    }
  }
  return {
    address: pod.address,
    child: engine.child,
    engineUrl: engine.url,
    pod,
    stop: () => pod.stop(),
    seen: () => lines,
    intercept,
    hold: (pattern) => {
      const [begun, released] = [createLatch(), createLatch()]
      const pass = intercept(pattern, async (_request, _reply, passOn) => {
        begun.open()
        await released.opened
        await passOn()
      })
      return {
        begun: begun.opened,
        release: () => {
          pass()
          released.open()
        },
      }
    },
  }
}

const forward = (port: number, { method, path, headers, bytes }: RecordedRequest, reply: PodReply): Promise<void> =>
  new Promise((resolve) => {
    const outgoing = httpRequest({ host: '127.0.0.1', port, method, path, headers, agent: false })
    outgoing.once('response', (response) => {
      reply.response.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(reply.response)
    })
    outgoing.once('error', () => reply.reset())
    outgoing.once('close', resolve)
    // An engine learns that its caller has left by the connection.
    void reply.finished.then((isWhole) => {
      if (!isWhole) outgoing.destroy()
    })
    outgoing.end(bytes)
  })
