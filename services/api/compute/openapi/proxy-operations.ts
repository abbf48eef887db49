import { type DescribedOperation, operation as one } from "../../http/describe-routes.ts";

/** The operations up to 2.35 that stand for another service's API, by method and path. */
export const PROXY_OPERATIONS: Readonly<Record<string, DescribedOperation>> = {
  "GET /images": one("listImages", "List images, with their names only", [200]),
  "GET /images/detail": one("listImagesInDetail", "List images with all their fields", [200]),
  "GET /images/{id}": one("showImage", "Show an image", [200]),
  "DELETE /images/{id}": one("deleteImage", "Delete an image", [204], [409]),
  "GET /images/{id}/metadata": one("listImageMetadata", "List an image's properties", [200]),
  "POST /images/{id}/metadata": one("addImageMetadata", "Add or change properties of an image", [200], [409]),
  "PUT /images/{id}/metadata": one("replaceImageMetadata", "Replace all properties of an image", [200], [409]),
  "GET /images/{id}/metadata/{key}": one("showImageMetadata", "Show a property of an image", [200]),
  "PUT /images/{id}/metadata/{key}": one("setImageMetadata", "Set a property of an image", [200], [409]),
  "DELETE /images/{id}/metadata/{key}": one("deleteImageMetadata", "Delete a property of an image", [204], [409]),

  "GET /os-baremetal-nodes": one("listBaremetalNodes", "Not supported (501)", [], [501]),
  "POST /os-baremetal-nodes": one("createBaremetalNode", "Refused: Ironic does it (400)", []),
  "GET /os-baremetal-nodes/{id}": one("showBaremetalNode", "Not supported (501)", [], [501]),
  "DELETE /os-baremetal-nodes/{id}": one("deleteBaremetalNode", "Refused: Ironic does it (400)", []),
  "POST /os-baremetal-nodes/{id}/action": one("runBaremetalAction", "Refused: Ironic does it (400)", []),

  "GET /os-networks": one("listNetworks", "List networks", [200]),
  "GET /os-networks/{id}": one("showNetwork", "Show a network", [200]),
  "GET /os-tenant-networks": one("listTenantNetworks", "List networks, with their names only", [200]),
  "GET /os-tenant-networks/{id}": one("showTenantNetwork", "Show the name of a network", [200]),

  "GET /os-floating-ips": one("listFloatingIps", "List the floating IPs of the project", [200]),
  "POST /os-floating-ips": one("createFloatingIp", "Get a floating IP of an external network", [200]),
  "GET /os-floating-ips/{id}": one("showFloatingIp", "Show a floating IP", [200]),
  "DELETE /os-floating-ips/{id}": one("deleteFloatingIp", "Give a floating IP back", [202]),
  "GET /os-floating-ip-pools": one("listFloatingIpPools", "List the external networks", [200]),

  "GET /os-volumes": one("listVolumes", "List volumes", [200]),
  "POST /os-volumes": one("createVolume", "Create a volume", [200]),
  "GET /os-volumes/detail": one("listVolumesInDetail", "List volumes, with the same fields", [200]),
  "GET /os-volumes/{id}": one("showVolume", "Show a volume", [200]),
  "DELETE /os-volumes/{id}": one("deleteVolume", "Delete a volume", [202]),
  "GET /os-snapshots": one("listSnapshots", "List snapshots of volumes", [200]),
  "POST /os-snapshots": one("createSnapshot", "Make a snapshot of a volume", [200]),
  "GET /os-snapshots/detail": one("listSnapshotsInDetail", "List snapshots of volumes, with the same fields", [200]),
  "GET /os-snapshots/{id}": one("showSnapshot", "Show a snapshot of a volume", [200]),
  "DELETE /os-snapshots/{id}": one("deleteSnapshot", "Delete a snapshot of a volume", [202]),

  "GET /os-security-groups": one("listSecurityGroups", "List security groups", [200]),
  "POST /os-security-groups": one("createSecurityGroup", "Create a security group", [200]),
  "GET /os-security-groups/{id}": one("showSecurityGroup", "Show a security group", [200]),
  "PUT /os-security-groups/{id}": one("updateSecurityGroup", "Rename or describe a security group", [200]),
  "DELETE /os-security-groups/{id}": one("deleteSecurityGroup", "Delete a security group", [202]),
  "POST /os-security-group-rules": one("createSecurityGroupRule", "Let traffic into a security group", [200]),
  "DELETE /os-security-group-rules/{id}": one("deleteSecurityGroupRule", "Delete a rule of a security group", [202]),
};
