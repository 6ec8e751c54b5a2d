/**
 * The four classes that are used, each from its own file. The package's entry also loads push gateways, clusters and
 * process metrics, which takes 10 ms of CPU at each start.
 */
declare module '@prometheus-io/client/lib/counter.js' {
  import { Counter } from '@prometheus-io/client'
  export = Counter
}

declare module '@prometheus-io/client/lib/gauge.js' {
  import { Gauge } from '@prometheus-io/client'
  export = Gauge
}

declare module '@prometheus-io/client/lib/histogram.js' {
  import { Histogram } from '@prometheus-io/client'
  export = Histogram
}

declare module '@prometheus-io/client/lib/registry.js' {
  import { Registry } from '@prometheus-io/client'
  export = Registry
}
