import { expect, test } from '@jest/globals'
import { openPortWarning } from '../../../src/config/open-port.ts'
import { essential, load, problemsOf } from './load.ts'

const certificates = { CTX_LISTEN_EXTPROC_TLS_CERTIFICATE: '/tls.crt', CTX_LISTEN_EXTPROC_TLS_KEY: '/tls.key' }
const principal = { ...essential, CTX_TENANT_PRINCIPAL_HEADER: 'x-principal' }

test.each<readonly [string, Readonly<Record<string, string>>, boolean]>([
  ['the default address', {}, false],
  ['another loopback address', { CTX_LISTEN_EXTPROC_HOST: '127.1.2.3' }, false],
  ['the loopback address of IPv6', { CTX_LISTEN_EXTPROC_HOST: '::1' }, false],
  ['localhost', { CTX_LISTEN_EXTPROC_HOST: 'localhost' }, false],
  ['a Unix socket', { CTX_LISTEN_EXTPROC_HOST: '0.0.0.0', CTX_LISTEN_EXTPROC_SOCKET_PATH: '/run/ctx' }, false],
  [
    'client certificates',
    { CTX_LISTEN_EXTPROC_HOST: '0.0.0.0', ...certificates, CTX_LISTEN_EXTPROC_TLS_CLIENT_CA: '/ca.crt' },
    false,
  ],
  ['every address', { CTX_LISTEN_EXTPROC_HOST: '0.0.0.0' }, true],
  ['every address of IPv6', { CTX_LISTEN_EXTPROC_HOST: '::' }, true],
  ['a name that looks like loopback', { CTX_LISTEN_EXTPROC_HOST: '127.example.com' }, true],
  ['TLS without client certificates', { CTX_LISTEN_EXTPROC_HOST: '0.0.0.0', ...certificates }, true],
  ['a certificate of its own', { CTX_LISTEN_EXTPROC_HOST: '0.0.0.0', CTX_LISTEN_EXTPROC_SELF_SIGNED: 'true' }, true],
])('%s: the port is open to others, and takes no principal from them: %j %s', (_name, environment, isOpen) => {
  const { listen } = load({ ...essential, ...environment })
  expect(openPortWarning(listen.extproc, undefined) !== undefined).toBe(isOpen)

  const problem = /tenant\.principalHeader .*any tenant.*tenant\.principalFromAnyPeer/
  expect(problem.test(problemsOf({ ...principal, ...environment }))).toBe(isOpen)
  expect(problemsOf({ ...principal, ...environment, CTX_TENANT_PRINCIPAL_FROM_ANY_PEER: 'true' })).toBe('none')
})

test('the warning is one line, and names the header by which a peer can be any tenant', () => {
  const { extproc } = load({ ...essential, CTX_LISTEN_EXTPROC_HOST: '0.0.0.0' }).listen
  const plain = openPortWarning(extproc, undefined)
  expect(plain).toMatch(/^[^\n]*credentials that it knows[^\n]*$/)
  expect(openPortWarning(extproc, 'x-principal')).toMatch(/^[^\n]*be any tenant by the header x-principal[^\n]*$/)
})
