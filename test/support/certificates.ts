import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** A certificate of an authority of its own, in PEM form. */
export interface MadeCertificate {
  readonly ca: string
  readonly key: string
  readonly cert: string
}

/** Makes a certificate for a DNS name with openssl. `commonName` tells certificates of one DNS name apart. */
export const makeCertificate = async (dnsName: string, commonName = dnsName): Promise<MadeCertificate> => {
  const folder = await mkdtemp(join(tmpdir(), 'certificate-'))
  const openssl = (command: string) => promisify(execFile)('openssl', command.split(' '), { cwd: folder })
  const ecKey = '-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
  try {
    await openssl(`req -x509 ${ecKey} -subj /CN=ca-of-${commonName} -days 2 -keyout ca.key -out ca.crt`)
    await openssl(`req ${ecKey} -subj /CN=${commonName} -keyout pod.key -out pod.csr`)
    await writeFile(join(folder, 'names'), `subjectAltName=DNS:${dnsName}\n`)
    await openssl('x509 -req -in pod.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out pod.crt')
    const [ca = '', key = '', cert = ''] = await Promise.all(
      ['ca.crt', 'pod.key', 'pod.crt'].map((name) => readFile(join(folder, name), 'utf8')),
    )
    return { ca, key, cert }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
