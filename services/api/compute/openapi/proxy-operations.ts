import { type DescribedOperation, operation as one } from "../../http/describe-routes.ts";

/** The operations up to 2.35 that stand for another service's API, by method and path. */
export const PROXY_OPERATIONS: Readonly<Record<string, DescribedOperation>> = {
  "GET /images": one("listImages", "List images, with their names only", [200]),
  "GET /images/detail": one("listImagesInDetail", "List images with all their fields", [200]),
  "GET /images/{id}": one("showImage", "Show an image", [200]),

  "GET /os-security-groups": one("listSecurityGroups", "List security groups", [200]),
  "POST /os-security-groups": one("createSecurityGroup", "Create a security group", [200]),
  "GET /os-security-groups/{id}": one("showSecurityGroup", "Show a security group", [200]),
  "PUT /os-security-groups/{id}": one("updateSecurityGroup", "Rename or describe a security group", [200]),
  "DELETE /os-security-groups/{id}": one("deleteSecurityGroup", "Delete a security group", [202]),
  "POST /os-security-group-rules": one("createSecurityGroupRule", "Let traffic into a security group", [200]),
  "DELETE /os-security-group-rules/{id}": one("deleteSecurityGroupRule", "Delete a rule of a security group", [202]),
};
