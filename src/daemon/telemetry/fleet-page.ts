import Gauge from '@prometheus-io/client/lib/gauge.js'
import Registry from '@prometheus-io/client/lib/registry.js'
import { type FleetMetricName, fleetMetrics, type FleetSeries } from '../../schemas/catalogue/fleet-metrics.ts'

/**
 * The series of the fleet in the text format of Prometheus; empty without series. The gauges exist only during one
 * scrape: the page has nothing that is not in `series`, and an agent that is not elected keeps nothing.
 */
export async function fleetPage(series: readonly FleetSeries[]): Promise<string> {
  if (series.length === 0) return ''
  const registry = new Registry()
  for (const [name, { help, labels }] of Object.entries(fleetMetrics)) {
    const samples = series.flatMap((one) => one[name as FleetMetricName] ?? [])
    if (samples.length === 0) continue // a gauge without labels would start with 0
    const labelNames = Object.keys(labels)
    const gauge = new Gauge({ name, help, labelNames, registers: [registry] })
    for (const [values, value] of samples)
      gauge.set(Object.fromEntries(labelNames.map((label, at) => [label, values[at] ?? ''])), value)
  }
  return await registry.metrics()
}
