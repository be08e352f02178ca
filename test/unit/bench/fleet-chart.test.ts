import { expect, test } from '@jest/globals'
import { type FleetPanel, renderFleetChart } from '../../../bench/fleet/fleet-chart.ts'

const panel = (
  engine: FleetPanel['engine'],
  gateway: FleetPanel['results'][number]['figures']['later'],
): FleetPanel => ({
  engine,
  results: [
    { way: 'round-robin', figures: { later: { ttftP50Ms: 748, ttftP90Ms: 6140, anewShare: 0.467 } } },
    { way: 'gateway', figures: { later: gateway } },
  ],
})

test('each engine has a panel with its figures and the shares computed anew as text', () => {
  const svg = renderFleetChart([
    panel('embedded', { ttftP50Ms: 175.4, ttftP90Ms: 335, anewShare: 0.021 }),
    panel('llama-server', { ttftP50Ms: 90, ttftP90Ms: 120, anewShare: 0 }),
  ])

  for (const label of ['175', '335', '748', '6140', '90', '120', 'p50', 'p90'])
    expect(svg).toContain(`>${label}</text>`)
  expect(svg).toContain('>llama-server: TTFT of later turns, ms</text>')
  expect(svg).toContain('>computed anew: round-robin 47 %, gateway 2 %</text>')
})

test('a way that was not measured, or got no answer, has no bar', () => {
  const bars = (svg: string): number => [...svg.matchAll(/<rect [^>]*width="(?!12")/g)].length

  expect(bars(renderFleetChart([panel('embedded', { ttftP50Ms: 1, ttftP90Ms: 2, anewShare: 0 })]))).toBe(4)
  const svg = renderFleetChart([panel('embedded', {})])
  expect(bars(svg)).toBe(2)
  expect(svg).toContain('gateway –')
})
