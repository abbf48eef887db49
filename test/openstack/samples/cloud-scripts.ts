import type { Answer } from "./answer.ts";
import { HOSTS, IMAGE } from "./sample-cloud.ts";
import type { Script } from "./sample-run.ts";

const aggregates: Script = async (run) => {
  const path = "/os-aggregates";
  const made = await run.send("POST", path, { request: "aggregate-post-req", answer: "aggregate-post-resp" });
  const aggregate = `${path}/${made.aggregate.id}`;
  const values = { host_name: HOSTS[3] };
  const act = (name: string, answer: string) =>
    run.send("POST", `${aggregate}/action`, { request: name, answer, values });
  await act("aggregate-add-host-post-req", "aggregates-add-host-post-resp");
  await act("aggregate-remove-host-post-req", "aggregates-remove-host-post-resp");
  await act("aggregate-metadata-post-req", "aggregates-metadata-post-resp");
  await run.get(aggregate, "aggregates-get-resp");
  await run.get(path, "aggregates-list-get-resp");
  await run.send("POST", `${aggregate}/images`, {
    request: "aggregate-images-post-req",
    status: 202,
    values: { image_id: IMAGE },
  });
  await run.send("PUT", aggregate, { request: "aggregate-update-post-req", answer: "aggregate-update-post-resp" });
  await run.cloud.must("DELETE", aggregate);
};

const hosts: Script = async (run) => {
  const host = `/os-hosts/${HOSTS[0]}`;
  await run.get("/os-hosts", "hosts-list-resp");
  await run.get(host, "host-get-resp");
  await run.send("PUT", host, { request: "host-put-maintenance-req", answer: "host-put-maintenance-resp" });
  for (const action of ["reboot", "shutdown", "startup"]) await run.get(`${host}/${action}`, `host-get-${action}`);
};

const hypervisors: Script = async (run) => {
  const { cloud, minor } = run;
  await cloud.boot({ availability_zone: `nova:${HOSTS[2]}` });
  const path = "/os-hypervisors";
  const found = (await cloud.call("GET", `${path}/detail`, { minor })).json.hypervisors;
  const one = found.find((each: Answer) => each.hypervisor_hostname === HOSTS[2]);
  const page = minor >= 33 ? `?limit=1&marker=${found[0].id}` : "";
  await run.get(`${path}${page}`, "hypervisors-list-resp");
  await run.get(`${path}/detail${page}`, "hypervisors-detail-resp");
  await run.get(`${path}/${one.id}`, "hypervisors-show-resp");
  await run.get(`${path}/statistics`, "hypervisors-statistics-resp");
  await run.get(`${path}/${one.id}/uptime`, "hypervisors-uptime-resp");
  await run.get(
    `${path}/detail?with_servers=1&hypervisor_hostname_pattern=${HOSTS[2]}`,
    "hypervisors-detail-with-servers-resp",
  );
  await run.get(`${path}/${one.id}?with_servers=1`, "hypervisors-show-with-servers-resp");
  const named = (host: string) =>
    minor >= 53 ? `${path}?with_servers=true&hypervisor_hostname_pattern=${host}` : `${path}/${host}/servers`;
  await run.get(
    minor >= 53 ? `${path}?hypervisor_hostname_pattern=${HOSTS[2]}` : `${path}/${HOSTS[2]}/search`,
    "hypervisors-search-resp",
  );
  await run.get(named(HOSTS[2]), "hypervisors-with-servers-resp");
  await run.get(named(HOSTS[3]), "hypervisors-without-servers-resp");
};

const services: Script = async (run) => {
  const { cloud, minor } = run;
  const host = HOSTS[3];
  if (minor === 69)
    return cloud.whileCellIsDown(async () => {
      await run.get("/os-services?binary=nova-compute", "services-list-get-resp");
    });
  await run.get("/os-services", "services-list-get-resp");
  const listed = (await cloud.must("GET", `/os-services?host=${host}&binary=nova-compute`)).services;
  const values = { host, binary: "nova-compute", disabled_reason: "test2", forced_down: "true" };
  const put = (name: string, request: string) => {
    const path = minor >= 53 ? `/os-services/${listed[0].id}` : `/os-services/${name}`;
    return run.send("PUT", path, {
      request: `service-${request}-put-req`,
      answer: `service-${request}-put-resp`,
      values,
      ...(request === "force-down" && { differing: ["status"] }),
    });
  };
  await put("disable", "disable");
  await put("disable-log-reason", "disable-log");
  await put("enable", "enable");
  await put("force-down", "force-down");
  await cloud.forceDown(host, false);
};

const zones: Script = async (run) => {
  await run.get("/os-availability-zone", "availability-zone-list-resp");
  await run.get("/os-availability-zone/detail", "availability-zone-detail-resp");
};

const images: Script = async (run) => {
  const image = `/images/${IMAGE}`;
  await run.get("/images", "images-list-get-resp");
  await run.get("/images/detail", "images-details-get-resp");
  await run.get(image, "image-get-resp");
  await run.send("PUT", `${image}/metadata`, { request: "image-metadata-put-req", answer: "image-metadata-put-resp" });
  await run.send("POST", `${image}/metadata`, {
    request: "image-metadata-post-req",
    answer: "image-metadata-post-resp",
  });
  await run.get(`${image}/metadata`, "image-metadata-get-resp");
  await run.send("PUT", `${image}/metadata/auto_disk_config`, {
    request: "image-meta-key-put-req",
    answer: "image-meta-key-put-resp",
  });
  await run.get(`${image}/metadata/kernel_id`, "image-meta-key-get");
};

/** What operators see: hosts, services, aggregates, and the cloud as a whole. */
export const CLOUD_SCRIPTS: Readonly<Record<string, Script>> = {
  "extension-info": async (run) => {
    await run.get("/extensions", "extensions-list-resp");
    await run.get("/extensions", "extensions-list-resp-v21-compatible");
    await run.get("/extensions/os-agents", "extensions-get-resp");
  },
  images,
  "os-aggregates": aggregates,
  "os-availability-zone": zones,
  "os-hosts": hosts,
  "os-hypervisors": hypervisors,
  "os-instance-usage-audit-log": async (run) => {
    await run.get("/os-instance_usage_audit_log", "inst-usage-audit-log-index-get-resp");
    await run.get("/os-instance_usage_audit_log/2012-07-05%2010:00:00", "inst-usage-audit-log-show-get-resp");
  },
  "os-services": services,
  versions: async (run) => {
    await run.get("/", "versions-get-resp");
    await run.get("/v2.1/", "v21-version-get-resp");
    await run.get("/v2/", "v2-version-get-resp");
  },
};
