import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { appendFile, copyFile, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { z } from 'zod'
import { makeCertificate } from '../../support/certificates.ts'
import { eventually } from '../../support/eventually.ts'
import { metric } from '../support/metrics.ts'
import { createdId, use } from '../support/sessions.ts'
import type { Stack } from '../support/stack.ts'
import { useScriptedStack } from '../support/use-stack.ts'

const folder = mkdtempSync(join(tmpdir(), 'tls-'))

const fileOf = (name: string): string => join(folder, name)

/** Puts a pair of files where the gateway reads its own. */
const install = async (name: string): Promise<void> => {
  await copyFile(fileOf(`${name}.key`), fileOf('port.key'))
  await copyFile(fileOf(`${name}.crt`), fileOf('port.crt'))
}

beforeAll(async () => {
  for (const name of ['first', 'second', 'envoy', 'stranger']) {
    const { ca, key, cert } = await makeCertificate('localhost', name)
    if (name !== 'stranger') await appendFile(fileOf('ca.crt'), ca)
    await writeFile(fileOf(`${name}.key`), key)
    await writeFile(fileOf(`${name}.crt`), cert)
  }
  await install('first')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const configForm = z.looseObject({
  static_resources: z.looseObject({ clusters: z.array(z.looseObject({ name: z.string() })) }),
})

/** Envoy encrypts; `mutual`: it checks the gateway's certificate, and shows one of its own. */
const withTls =
  (mutual: boolean) =>
  (text: string): string => {
    const config = configForm.parse(parse(text))
    const certificates = {
      validation_context: { trusted_ca: { filename: fileOf('ca.crt') } },
      tls_certificates: [
        { certificate_chain: { filename: fileOf('envoy.crt') }, private_key: { filename: fileOf('envoy.key') } },
      ],
    }
    const socket = {
      name: 'envoy.transport_sockets.tls',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
        common_tls_context: { alpn_protocols: ['h2'], ...(mutual ? certificates : {}) },
      },
    }
    const clusters = config.static_resources.clusters.map((cluster) =>
      cluster.name.startsWith('gateway') ? { ...cluster, transport_socket: socket } : cluster,
    )
    return JSON.stringify({ ...config, static_resources: { ...config.static_resources, clusters } })
  }

const certificate = {
  CTX_LISTEN_EXTPROC_TLS_CERTIFICATE: fileOf('port.crt'),
  CTX_LISTEN_EXTPROC_TLS_KEY: fileOf('port.key'),
}
const mutual = { ...certificate, CTX_LISTEN_EXTPROC_TLS_CLIENT_CA: fileOf('ca.crt') }

const takesTurns = async (running: Stack): Promise<void> => {
  const id = await eventually(() => createdId(running))
  const response = await use(running, id)
  expect([response.status, response.headers.get('x-session-id')]).toEqual([200, id])
}

/** The common name of the certificate that a new connection gets. Rejects when the gateway refuses the connection. */
const nameServed = async (running: Stack, certificateOf = 'envoy'): Promise<unknown> => {
  const socket = connect({
    host: '127.0.0.1',
    port: Number(running.gateway().extproc.split(':')[1]),
    ca: await readFile(fileOf('ca.crt')),
    ALPNProtocols: ['h2'],
    servername: 'localhost',
    ...(certificateOf === ''
      ? {}
      : { cert: await readFile(fileOf(`${certificateOf}.crt`)), key: await readFile(fileOf(`${certificateOf}.key`)) }),
  })
  try {
    await once(socket, 'secureConnect')
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    // The server's settings, or its alert. It may also close without one.
    const [answer] = await Promise.race([once(socket, 'data'), once(socket, 'close')])
    if (!Buffer.isBuffer(answer)) throw new Error('closed without an answer')
    return socket.getPeerCertificate().subject.CN
  } finally {
    socket.destroy()
  }
}

describe('TLS', () => {
  const { stack } = useScriptedStack({
    env: { CTX_LISTEN_EXTPROC_SELF_SIGNED: 'true' },
    envoyConfig: withTls(false),
  })

  test('with a self-made certificate takes turns of an Envoy that does not check it', () => takesTurns(stack))

  test('with a certificate takes turns of an Envoy that has none, and serves that certificate', async () => {
    await stack.gateway().child.stop()
    await stack.restartGateway(0, certificate)

    await takesTurns(stack)
    expect(await nameServed(stack, '')).toBe('first')
  })
})

describe('mutual TLS', () => {
  const { stack } = useScriptedStack({ env: mutual, envoyConfig: withTls(true) })

  test('takes turns; clients without a certificate or with a foreign one are refused, counted and logged', async () => {
    await takesTurns(stack)
    for (const certificateOf of ['', 'stranger', '', 'stranger'])
      await expect(nameServed(stack, certificateOf)).rejects.toThrow(
        /certificate required|ECONNRESET|EPIPE|alert|closed/,
      )
    await eventually(async () => (await metric(stack, 'ext_proc_peers_refused_total', { reason: 'certificate' })) === 4)
    expect(stack.output().match(/.*TLS refused a peer.*/g)).toEqual([
      expect.stringContaining('"peer":{"reason":"certificate","cause":"ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE"}'),
    ])
  })

  test('a new certificate is served, and after a broken file the last good one', async () => {
    expect(await nameServed(stack)).toBe('first')

    await install('second')
    await eventually(async () => expect(await nameServed(stack)).toBe('second'))

    await writeFile(fileOf('port.crt'), 'no certificate')
    await eventually(() => expect(stack.output()).toContain('the TLS files cannot be used'))
    expect(await nameServed(stack)).toBe('second')
    await takesTurns(stack)

    await rm(fileOf('port.crt'))
    await install('first')
    await eventually(async () => expect(await nameServed(stack)).toBe('first'))
  })
})
