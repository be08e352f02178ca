import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { z } from 'zod'
import { eventually } from '../../support/eventually.ts'
import { type ScriptedPod, startScriptedPod } from '../support/scripted-pod.ts'
import { createdId, use } from '../support/sessions.ts'
import { type Stack, startStack } from '../support/stack.ts'

const run = promisify(execFile)
let folder: string
let pod: ScriptedPod
let stack: Stack | undefined

const fileOf = (name: string): string => join(folder, name)

/** A certificate of the authority `ca`, for localhost. */
const issue = async (name: string): Promise<void> => {
  const subject = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', `/CN=${name}`]
  await run('openssl', ['req', ...subject, '-keyout', fileOf(`${name}.key`), '-out', fileOf(`${name}.csr`)])
  await writeFile(fileOf('extensions'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n')
  const authority = ['-CA', fileOf('ca.crt'), '-CAkey', fileOf('ca.key'), '-CAcreateserial', '-days', '2']
  const names = ['-extfile', fileOf('extensions')]
  await run('openssl', [
    'x509',
    '-req',
    '-in',
    fileOf(`${name}.csr`),
    ...authority,
    ...names,
    '-out',
    fileOf(`${name}.crt`),
  ])
}

/** Puts a pair of files where the gateway reads its own. */
const install = async (name: string): Promise<void> => {
  await copyFile(fileOf(`${name}.key`), fileOf('port.key'))
  await copyFile(fileOf(`${name}.crt`), fileOf('port.crt'))
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tls-'))
  const subject = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=ca', '-days', '2']
  await run('openssl', ['req', '-x509', ...subject, '-keyout', fileOf('ca.key'), '-out', fileOf('ca.crt')])
  for (const name of ['first', 'second', 'envoy']) await issue(name)
  pod = await startScriptedPod()
})
afterEach(async () => {
  await stack?.stop()
  stack = undefined
})
afterAll(async () => {
  await pod?.stop()
  await rm(folder, { recursive: true, force: true })
})

const configForm = z.looseObject({
  static_resources: z.looseObject({ clusters: z.array(z.looseObject({ name: z.string() })) }),
})

/** Envoy checks the gateway's certificate, and has one of its own where it is told so. */
const withTls =
  (client: boolean) =>
  (text: string): string => {
    const config = configForm.parse(parse(text))
    const own = {
      certificate_chain: { filename: fileOf('envoy.crt') },
      private_key: { filename: fileOf('envoy.key') },
    }
    const socket = {
      name: 'envoy.transport_sockets.tls',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
        common_tls_context: {
          alpn_protocols: ['h2'],
          validation_context: { trusted_ca: { filename: fileOf('ca.crt') } },
          ...(client ? { tls_certificates: [own] } : {}),
        },
      },
    }
    const clusters = config.static_resources.clusters.map((cluster) =>
      cluster.name.startsWith('gateway') ? { ...cluster, transport_socket: socket } : cluster,
    )
    return JSON.stringify({ ...config, static_resources: { ...config.static_resources, clusters } })
  }

const start = async (parts: { readonly mutual: boolean; readonly envoyHasCertificate: boolean }): Promise<Stack> => {
  await install('first')
  stack = await startStack({
    pods: async () => [pod],
    env: {
      CONNECTOR: 'none',
      CTX_LISTEN_EXTPROC_TLS_CERTIFICATE: fileOf('port.crt'),
      CTX_LISTEN_EXTPROC_TLS_KEY: fileOf('port.key'),
      ...(parts.mutual ? { CTX_LISTEN_EXTPROC_TLS_CLIENT_CA: fileOf('ca.crt') } : {}),
    },
    envoyConfig: withTls(parts.envoyHasCertificate),
  })
  return stack
}

const takesTurns = async (running: Stack): Promise<void> => {
  const id = await eventually(() => createdId(running))
  const answer = await use(running, id)
  expect([answer.status, answer.headers.get('x-session-id')]).toEqual([200, id])
}

/** The common name of the certificate that a new connection gets. Rejects when the gateway refuses the connection. */
const nameServed = async (running: Stack, withCertificate = true): Promise<unknown> => {
  const socket = connect({
    host: '127.0.0.1',
    port: Number(running.gateway().extproc.split(':')[1]),
    ca: await readFile(fileOf('ca.crt')),
    ALPNProtocols: ['h2'],
    ...(withCertificate ? { cert: await readFile(fileOf('envoy.crt')), key: await readFile(fileOf('envoy.key')) } : {}),
  })
  try {
    await once(socket, 'secureConnect')
    // The server's settings, or its alert.
    await once(socket, 'data')
    return socket.getPeerCertificate().subject.CN
  } finally {
    socket.destroy()
  }
}

test('TLS: Envoy checks the certificate of the port, and turns work', async () => {
  await takesTurns(await start({ mutual: false, envoyHasCertificate: false }))
})

describe('mutual TLS', () => {
  test('Envoy with a certificate takes turns, and a client without one is refused', async () => {
    const running = await start({ mutual: true, envoyHasCertificate: true })
    await takesTurns(running)
    await expect(nameServed(running, false)).rejects.toThrow(/certificate required|ECONNRESET|alert/)
  })

  test('Envoy without a certificate reaches no gateway', async () => {
    const running = await start({ mutual: true, envoyHasCertificate: false })
    await expect(createdId(running)).rejects.toThrow('no session was created: 503')
  })
})

describe('files that change', () => {
  test('a new certificate is served, and a broken file leaves the last good one', async () => {
    const running = await start({ mutual: true, envoyHasCertificate: true })
    expect(await nameServed(running)).toBe('first')

    await install('second')
    await eventually(async () => expect(await nameServed(running)).toBe('second'))

    await writeFile(fileOf('port.crt'), 'no certificate')
    await eventually(() => expect(running.output()).toContain('the TLS files cannot be used'))
    expect(await nameServed(running)).toBe('second')
    await takesTurns(running)

    await rm(fileOf('port.crt'))
    await install('first')
    await eventually(async () => expect(await nameServed(running)).toBe('first'))
  })
})
