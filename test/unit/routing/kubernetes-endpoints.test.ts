import { expect, test } from '@jest/globals'
import { endpointsOfSlices } from '../../../src/routing/kubernetes/endpoints.ts'

const hosts = { IPv6: 'fd00::1', IPv4: '10.0.0.1', FQDN: 'pod.example' }

test.each<[(keyof typeof hosts)[], string[]]>([
  [['IPv6', 'IPv4'], ['10.0.0.1:8000']],
  [['IPv6', 'FQDN'], ['[fd00::1]:8000']],
])('a service with slices of %j is one pod', (addressTypes, addresses) => {
  const slices = addressTypes.map((addressType) => ({
    metadata: {},
    addressType,
    ports: [{ port: 8000 }],
    endpoints: [{ addresses: [hosts[addressType]] }],
  }))
  expect(endpointsOfSlices(slices, []).map(({ address }) => address)).toEqual(addresses)
})
