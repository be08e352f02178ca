import { tmpdir } from 'node:os'
import { describe, expect, test } from '@jest/globals'
import { availableResources, describeNeeds, fleetNeeds, shortageOf } from '../../../../../playground/vllm/resources.ts'

const gibibyte = 1024 ** 3
const plenty = { memoryBytes: 64 * gibibyte, diskBytes: 100 * gibibyte }

describe('what a fleet takes', () => {
  test('is said with memory, disk and time', () => {
    expect(describeNeeds({ pods: 2, installed: false })).toBe(
      'needs up to 11.7 GB of memory and 8.0 GB of disk, and about 2 minutes, after several more for the installation, on two processors',
    )
    expect(describeNeeds({ pods: 1, installed: true })).toMatch(
      /^needs up to 6\.2 GB of memory and 1\.0 GB of disk, and about 2 minutes on/,
    )
  })

  test.each([
    { name: 'enough of both', fleet: { pods: 2, installed: false }, available: plenty, shortage: undefined },
    {
      name: 'less memory than servers take that have just started',
      fleet: { pods: 2, installed: true },
      available: { ...plenty, memoryBytes: 7.6 * gibibyte },
      shortage: 'There is not enough memory: 2 pods of vLLM take at least 7.7 GB, 7.6 GB are available.',
    },
    {
      name: 'memory that is only tight',
      fleet: { pods: 2, installed: true },
      available: { ...plenty, memoryBytes: 8 * gibibyte },
      shortage: undefined,
    },
    {
      name: 'no room for the environment',
      fleet: { pods: 1, installed: false },
      available: { ...plenty, diskBytes: 5 * gibibyte },
      shortage: 'There is not enough room on the disk: 8.0 GB are needed, 5.0 GB are free.',
    },
    {
      name: 'room for stored KV only, where the environment stands already',
      fleet: { pods: 1, installed: true },
      available: { ...plenty, diskBytes: 5 * gibibyte },
      shortage: undefined,
    },
  ])('$name', ({ fleet, available, shortage }) => {
    expect(shortageOf(fleet, available)).toBe(shortage)
  })

  test('grows with the pods', () => {
    const [one, two] = [1, 2].map((pods) => fleetNeeds({ pods, installed: true }).memoryBytes)
    expect(two).toBeGreaterThan(Number(one) * 1.5)
  })

  test('the machine tells what it has', async () => {
    const { memoryBytes, diskBytes } = await availableResources(tmpdir())
    expect(memoryBytes).toBeGreaterThan(0)
    expect(diskBytes).toBeGreaterThan(0)
  })
})
