//! The operations.

macro_rules! ops {
    ($($op:ident)*) => {
        /// What an instruction does, whatever its encoding: `v_add_f32_e32`, `_e64`, `_sdwa` and `_dpp` are one `Op`.
        ///
        /// A variant is its mnemonic in camel case; [`Op::info`] has the facts.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs)]
        #[repr(u16)]
        pub enum Op {
            $($op,)*
        }

        impl Op {
            /// Every operation, ordered as declared.
            pub const ALL: &[Self] = &[$(Self::$op,)*];
        }
    };
}

ops! {
    // SOP1
    SMovB32 SMovB64 SCmovB32 SCmovB64 SNotB32 SNotB64 SWqmB32 SWqmB64 SBrevB32 SBrevB64 SBcnt0I32B32 SBcnt0I32B64
    SBcnt1I32B32 SBcnt1I32B64 SFf0I32B32 SFf0I32B64 SFf1I32B32 SFf1I32B64 SFlbitI32B32 SFlbitI32B64 SFlbitI32
    SFlbitI32I64 SSextI32I8 SSextI32I16 SBitset0B32 SBitset0B64 SBitset1B32 SBitset1B64 SGetpcB64 SSetpcB64 SSwappcB64
    SRfeB64 SAndSaveexecB64 SOrSaveexecB64 SXorSaveexecB64 SAndn2SaveexecB64 SOrn2SaveexecB64 SNandSaveexecB64
    SNorSaveexecB64 SXnorSaveexecB64 SQuadmaskB32 SQuadmaskB64 SMovrelsB32 SMovrelsB64 SMovreldB32 SMovreldB64
    SCbranchJoin SAbsI32 SSetGprIdxIdx SAndn1SaveexecB64 SOrn1SaveexecB64 SAndn1WrexecB64 SAndn2WrexecB64
    SBitreplicateB64B32
    // SOP2
    SAddU32 SSubU32 SAddI32 SSubI32 SAddcU32 SSubbU32 SMinI32 SMinU32 SMaxI32 SMaxU32 SCselectB32 SCselectB64 SAndB32
    SAndB64 SOrB32 SOrB64 SXorB32 SXorB64 SAndn2B32 SAndn2B64 SOrn2B32 SOrn2B64 SNandB32 SNandB64 SNorB32 SNorB64
    SXnorB32 SXnorB64 SLshlB32 SLshlB64 SLshrB32 SLshrB64 SAshrI32 SAshrI64 SBfmB32 SBfmB64 SMulI32 SBfeU32 SBfeI32
    SBfeU64 SBfeI64 SCbranchGFork SAbsdiffI32 SRfeRestoreB64 SMulHiU32 SMulHiI32 SLshl1AddU32 SLshl2AddU32 SLshl3AddU32
    SLshl4AddU32 SPackLlB32B16 SPackLhB32B16 SPackHhB32B16
    // SOPK
    SMovkI32 SCmovkI32 SCmpkEqI32 SCmpkLgI32 SCmpkGtI32 SCmpkGeI32 SCmpkLtI32 SCmpkLeI32 SCmpkEqU32 SCmpkLgU32
    SCmpkGtU32 SCmpkGeU32 SCmpkLtU32 SCmpkLeU32 SAddkI32 SMulkI32 SCbranchIFork SGetregB32 SSetregB32 SSetregImm32B32
    SCallB64
    // SOPC
    SCmpEqI32 SCmpLgI32 SCmpGtI32 SCmpGeI32 SCmpLtI32 SCmpLeI32 SCmpEqU32 SCmpLgU32 SCmpGtU32 SCmpGeU32 SCmpLtU32
    SCmpLeU32 SBitcmp0B32 SBitcmp1B32 SBitcmp0B64 SBitcmp1B64 SSetvskip SSetGprIdxOn SCmpEqU64 SCmpLgU64
    // SOPP
    SNop SEndpgm SBranch SWakeup SCbranchScc0 SCbranchScc1 SCbranchVccz SCbranchVccnz SCbranchExecz SCbranchExecnz
    SBarrier SSetkill SWaitcnt SSethalt SSleep SSetprio SSendmsg SSendmsghalt STrap SIcacheInv SIncperflevel
    SDecperflevel STtracedata SCbranchCdbgsys SCbranchCdbguser SCbranchCdbgsysOrUser SCbranchCdbgsysAndUser SEndpgmSaved
    SSetGprIdxOff SSetGprIdxMode SEndpgmOrderedPsDone
    // SMEM
    SLoadDword SLoadDwordx2 SLoadDwordx4 SLoadDwordx8 SLoadDwordx16 SScratchLoadDword SScratchLoadDwordx2
    SScratchLoadDwordx4 SBufferLoadDword SBufferLoadDwordx2 SBufferLoadDwordx4 SBufferLoadDwordx8 SBufferLoadDwordx16
    SStoreDword SStoreDwordx2 SStoreDwordx4 SScratchStoreDword SScratchStoreDwordx2 SScratchStoreDwordx4
    SBufferStoreDword SBufferStoreDwordx2 SBufferStoreDwordx4 SDcacheInv SDcacheWb SDcacheInvVol SDcacheWbVol SMemtime
    SMemrealtime SAtcProbe SAtcProbeBuffer SDcacheDiscard SDcacheDiscardX2 SBufferAtomicSwap SBufferAtomicCmpswap
    SBufferAtomicAdd SBufferAtomicSub SBufferAtomicSmin SBufferAtomicUmin SBufferAtomicSmax SBufferAtomicUmax
    SBufferAtomicAnd SBufferAtomicOr SBufferAtomicXor SBufferAtomicInc SBufferAtomicDec SBufferAtomicSwapX2
    SBufferAtomicCmpswapX2 SBufferAtomicAddX2 SBufferAtomicSubX2 SBufferAtomicSminX2 SBufferAtomicUminX2
    SBufferAtomicSmaxX2 SBufferAtomicUmaxX2 SBufferAtomicAndX2 SBufferAtomicOrX2 SBufferAtomicXorX2 SBufferAtomicIncX2
    SBufferAtomicDecX2 SAtomicSwap SAtomicCmpswap SAtomicAdd SAtomicSub SAtomicSmin SAtomicUmin SAtomicSmax SAtomicUmax
    SAtomicAnd SAtomicOr SAtomicXor SAtomicInc SAtomicDec SAtomicSwapX2 SAtomicCmpswapX2 SAtomicAddX2 SAtomicSubX2
    SAtomicSminX2 SAtomicUminX2 SAtomicSmaxX2 SAtomicUmaxX2 SAtomicAndX2 SAtomicOrX2 SAtomicXorX2 SAtomicIncX2
    SAtomicDecX2
    // VOP1
    VNop VMovB32 VReadfirstlaneB32 VCvtI32F64 VCvtF64I32 VCvtF32I32 VCvtF32U32 VCvtU32F32 VCvtI32F32 VCvtF16F32
    VCvtF32F16 VCvtRpiI32F32 VCvtFlrI32F32 VCvtOffF32I4 VCvtF32F64 VCvtF64F32 VCvtF32Ubyte0 VCvtF32Ubyte1 VCvtF32Ubyte2
    VCvtF32Ubyte3 VCvtU32F64 VCvtF64U32 VTruncF64 VCeilF64 VRndneF64 VFloorF64 VFractF32 VTruncF32 VCeilF32 VRndneF32
    VFloorF32 VExpF32 VLogF32 VRcpF32 VRcpIflagF32 VRsqF32 VRcpF64 VRsqF64 VSqrtF32 VSqrtF64 VSinF32 VCosF32 VNotB32
    VBfrevB32 VFfbhU32 VFfblB32 VFfbhI32 VFrexpExpI32F64 VFrexpMantF64 VFractF64 VFrexpExpI32F32 VFrexpMantF32 VClrexcp
    VScreenPartition4seB32 VMovB64 VCvtF16U16 VCvtF16I16 VCvtU16F16 VCvtI16F16 VRcpF16 VSqrtF16 VRsqF16 VLogF16 VExpF16
    VFrexpMantF16 VFrexpExpI16F16 VFloorF16 VCeilF16 VTruncF16 VRndneF16 VFractF16 VSinF16 VCosF16 VExpLegacyF32
    VLogLegacyF32 VCvtNormI16F16 VCvtNormU16F16 VSatPkU8I16 VSwapB32 VAccvgprMovB32 VCvtF32Fp8 VCvtF32Bf8 VCvtPkF32Fp8
    VCvtPkF32Bf8 VPrngB32 VPermlane16SwapB32 VPermlane32SwapB32 VCvtF32Bf16
    // VOP2
    VCndmaskB32 VAddF32 VSubF32 VSubrevF32 VFmacF64 VMulF32 VMulI32I24 VMulHiI32I24 VMulU32U24 VMulHiU32U24 VMinF32
    VMaxF32 VMinI32 VMaxI32 VMinU32 VMaxU32 VLshrrevB32 VAshrrevI32 VLshlrevB32 VAndB32 VOrB32 VXorB32 VDot2cF32Bf16
    VFmamkF32 VFmaakF32 VAddCoU32 VSubCoU32 VSubrevCoU32 VAddcCoU32 VSubbCoU32 VSubbrevCoU32 VAddF16 VSubF16 VSubrevF16
    VMulF16 VMacF16 VMadmkF16 VMadakF16 VAddU16 VSubU16 VSubrevU16 VMulLoU16 VLshlrevB16 VLshrrevB16 VAshrrevI16 VMaxF16
    VMinF16 VMaxU16 VMaxI16 VMinU16 VMinI16 VLdexpF16 VAddU32 VSubU32 VSubrevU32 VDot2cF32F16 VDot2cI32I16 VDot4cI32I8
    VDot8cI32I4 VFmacF32 VPkFmacF16 VXnorB32
    // VOPC
    VCmpClassF32 VCmpxClassF32 VCmpClassF64 VCmpxClassF64 VCmpClassF16 VCmpxClassF16 VCmpFF16 VCmpLtF16 VCmpEqF16
    VCmpLeF16 VCmpGtF16 VCmpLgF16 VCmpGeF16 VCmpOF16 VCmpUF16 VCmpNgeF16 VCmpNlgF16 VCmpNgtF16 VCmpNleF16 VCmpNeqF16
    VCmpNltF16 VCmpTruF16 VCmpxFF16 VCmpxLtF16 VCmpxEqF16 VCmpxLeF16 VCmpxGtF16 VCmpxLgF16 VCmpxGeF16 VCmpxOF16
    VCmpxUF16 VCmpxNgeF16 VCmpxNlgF16 VCmpxNgtF16 VCmpxNleF16 VCmpxNeqF16 VCmpxNltF16 VCmpxTruF16 VCmpFF32 VCmpLtF32
    VCmpEqF32 VCmpLeF32 VCmpGtF32 VCmpLgF32 VCmpGeF32 VCmpOF32 VCmpUF32 VCmpNgeF32 VCmpNlgF32 VCmpNgtF32 VCmpNleF32
    VCmpNeqF32 VCmpNltF32 VCmpTruF32 VCmpxFF32 VCmpxLtF32 VCmpxEqF32 VCmpxLeF32 VCmpxGtF32 VCmpxLgF32 VCmpxGeF32
    VCmpxOF32 VCmpxUF32 VCmpxNgeF32 VCmpxNlgF32 VCmpxNgtF32 VCmpxNleF32 VCmpxNeqF32 VCmpxNltF32 VCmpxTruF32 VCmpFF64
    VCmpLtF64 VCmpEqF64 VCmpLeF64 VCmpGtF64 VCmpLgF64 VCmpGeF64 VCmpOF64 VCmpUF64 VCmpNgeF64 VCmpNlgF64 VCmpNgtF64
    VCmpNleF64 VCmpNeqF64 VCmpNltF64 VCmpTruF64 VCmpxFF64 VCmpxLtF64 VCmpxEqF64 VCmpxLeF64 VCmpxGtF64 VCmpxLgF64
    VCmpxGeF64 VCmpxOF64 VCmpxUF64 VCmpxNgeF64 VCmpxNlgF64 VCmpxNgtF64 VCmpxNleF64 VCmpxNeqF64 VCmpxNltF64 VCmpxTruF64
    VCmpFI16 VCmpLtI16 VCmpEqI16 VCmpLeI16 VCmpGtI16 VCmpNeI16 VCmpGeI16 VCmpTI16 VCmpFU16 VCmpLtU16 VCmpEqU16 VCmpLeU16
    VCmpGtU16 VCmpNeU16 VCmpGeU16 VCmpTU16 VCmpxFI16 VCmpxLtI16 VCmpxEqI16 VCmpxLeI16 VCmpxGtI16 VCmpxNeI16 VCmpxGeI16
    VCmpxTI16 VCmpxFU16 VCmpxLtU16 VCmpxEqU16 VCmpxLeU16 VCmpxGtU16 VCmpxNeU16 VCmpxGeU16 VCmpxTU16 VCmpFI32 VCmpLtI32
    VCmpEqI32 VCmpLeI32 VCmpGtI32 VCmpNeI32 VCmpGeI32 VCmpTI32 VCmpFU32 VCmpLtU32 VCmpEqU32 VCmpLeU32 VCmpGtU32
    VCmpNeU32 VCmpGeU32 VCmpTU32 VCmpxFI32 VCmpxLtI32 VCmpxEqI32 VCmpxLeI32 VCmpxGtI32 VCmpxNeI32 VCmpxGeI32 VCmpxTI32
    VCmpxFU32 VCmpxLtU32 VCmpxEqU32 VCmpxLeU32 VCmpxGtU32 VCmpxNeU32 VCmpxGeU32 VCmpxTU32 VCmpFI64 VCmpLtI64 VCmpEqI64
    VCmpLeI64 VCmpGtI64 VCmpNeI64 VCmpGeI64 VCmpTI64 VCmpFU64 VCmpLtU64 VCmpEqU64 VCmpLeU64 VCmpGtU64 VCmpNeU64
    VCmpGeU64 VCmpTU64 VCmpxFI64 VCmpxLtI64 VCmpxEqI64 VCmpxLeI64 VCmpxGtI64 VCmpxNeI64 VCmpxGeI64 VCmpxTI64 VCmpxFU64
    VCmpxLtU64 VCmpxEqU64 VCmpxLeU64 VCmpxGtU64 VCmpxNeU64 VCmpxGeU64 VCmpxTU64
    // VOP3 only
    VMadI32I24 VMadU32U24 VCubeidF32 VCubescF32 VCubetcF32 VCubemaF32 VBfeU32 VBfeI32 VBfiB32 VFmaF32 VFmaF64 VLerpU8
    VAlignbitB32 VAlignbyteB32 VMin3F32 VMin3I32 VMin3U32 VMax3F32 VMax3I32 VMax3U32 VMed3F32 VMed3I32 VMed3U32 VSadU8
    VSadHiU8 VSadU16 VSadU32 VCvtPkU8F32 VDivFixupF32 VDivFixupF64 VDivScaleF32 VDivScaleF64 VDivFmasF32 VDivFmasF64
    VMsadU8 VQsadPkU16U8 VMqsadPkU16U8 VMqsadU32U8 VMadU64U32 VMadI64I32 VMadLegacyF16 VMadLegacyU16 VMadLegacyI16
    VPermB32 VFmaLegacyF16 VDivFixupLegacyF16 VCvtPkaccumU8F32 VMadU32U16 VMadI32I16 VXadU32 VMin3F16 VMin3I16 VMin3U16
    VMax3F16 VMax3I16 VMax3U16 VMed3F16 VMed3I16 VMed3U16 VLshlAddU32 VAddLshlU32 VAdd3U32 VLshlOrB32 VAndOrB32 VOr3B32
    VMadF16 VMadU16 VMadI16 VFmaF16 VDivFixupF16 VLshlAddU64 VBitop3B16 VBitop3B32 VCvtScalef32PkFp8F32
    VCvtScalef32PkBf8F32 VCvtScalef32SrFp8F32 VCvtScalef32SrBf8F32 VCvtScalef32PkF32Fp8 VCvtScalef32PkF32Bf8
    VCvtScalef32F32Fp8 VCvtScalef32F32Bf8 VCvtScalef32PkFp4F32 VCvtScalef32SrPkFp4F32 VCvtScalef32PkF32Fp4
    VCvtScalef32PkFp8F16 VCvtScalef32PkBf8F16 VCvtScalef32SrFp8F16 VCvtScalef32SrBf8F16 VCvtScalef32PkFp8Bf16
    VCvtScalef32PkBf8Bf16 VCvtScalef32SrFp8Bf16 VCvtScalef32SrBf8Bf16 VCvtScalef32PkF16Fp8 VCvtScalef32PkF16Bf8
    VCvtScalef32F16Fp8 VCvtScalef32F16Bf8 VCvtScalef32PkFp4F16 VCvtScalef32PkFp4Bf16 VCvtScalef32SrPkFp4F16
    VCvtScalef32SrPkFp4Bf16 VCvtScalef32PkF16Fp4 VCvtScalef32PkBf16Fp4 VCvtScalef32_2xpk16Fp6F32
    VCvtScalef32_2xpk16Bf6F32 VCvtScalef32SrPk32Fp6F32 VCvtScalef32SrPk32Bf6F32 VCvtScalef32Pk32F32Fp6
    VCvtScalef32Pk32F32Bf6 VCvtScalef32Pk32Fp6F16 VCvtScalef32Pk32Fp6Bf16 VCvtScalef32Pk32Bf6F16 VCvtScalef32Pk32Bf6Bf16
    VCvtScalef32SrPk32Fp6F16 VCvtScalef32SrPk32Fp6Bf16 VCvtScalef32SrPk32Bf6F16 VCvtScalef32SrPk32Bf6Bf16
    VCvtScalef32Pk32F16Fp6 VCvtScalef32Pk32Bf16Fp6 VCvtScalef32Pk32F16Bf6 VCvtScalef32Pk32Bf16Bf6 VAshrPkI8I32
    VAshrPkU8I32 VCvtPkF16F32 VCvtPkBf16F32 VCvtScalef32PkBf16Fp8 VCvtScalef32PkBf16Bf8 VAddF64 VMulF64 VMinF64 VMaxF64
    VLdexpF64 VMulLoU32 VMulHiU32 VMulHiI32 VLdexpF32 VReadlaneB32 VWritelaneB32 VBcntU32B32 VMbcntLoU32B32
    VMbcntHiU32B32 VLshlrevB64 VLshrrevB64 VAshrrevI64 VTrigPreopF64 VBfmB32 VCvtPknormI16F32 VCvtPknormU16F32
    VCvtPkrtzF16F32 VCvtPkU16U32 VCvtPkI16I32 VCvtPknormI16F16 VCvtPknormU16F16 VAddI32 VSubI32 VAddI16 VSubI16
    VPackB32F16 VMulLegacyF32 VCvtPkFp8F32 VCvtPkBf8F32 VCvtSrFp8F32 VCvtSrBf8F32 VCvtSrF16F32 VCvtSrBf16F32
    VMinimum3F32 VMaximum3F32
    // VOP3P
    VPkMadI16 VPkMulLoU16 VPkAddI16 VPkSubI16 VPkLshlrevB16 VPkLshrrevB16 VPkAshrrevI16 VPkMaxI16 VPkMinI16 VPkMadU16
    VPkAddU16 VPkSubU16 VPkMaxU16 VPkMinU16 VPkFmaF16 VPkAddF16 VPkMulF16 VPkMinF16 VPkMaxF16 VDot2F32Bf16
    VPkMinimum3F16 VPkMaximum3F16 VFmaMixF32 VFmaMixloF16 VFmaMixhiF16 VDot2F32F16 VDot2I32I16 VDot2U32U16 VDot4I32I8
    VDot4U32U8 VDot8I32I4 VDot8U32U4 VMfmaLdScaleB32 VPkFmaF32 VPkMulF32 VPkAddF32 VPkMovB32
    // VOP3P-MAI
    VMfmaF32_16x16x128F8f6f4 VMfmaF32_32x32x64F8f6f4 VMfmaF32_16x16x32Bf16 VMfmaI32_16x16x64I8 VMfmaF32_32x32x16Bf16
    VMfmaI32_32x32x32I8 VSmfmacF32_16x16x64Bf16 VSmfmacI32_16x16x128I8 VSmfmacF32_16x16x128Bf8Bf8
    VSmfmacF32_16x16x128Bf8Fp8 VSmfmacF32_16x16x128Fp8Bf8 VMfmaF32_32x32x1_2bF32 VMfmaF32_16x16x1_4bF32
    VMfmaF32_4x4x1_16bF32 VSmfmacF32_16x16x128Fp8Fp8 VMfmaF32_32x32x2F32 VMfmaF32_16x16x4F32 VSmfmacF32_32x32x32Bf16
    VSmfmacI32_32x32x64I8 VMfmaF32_32x32x4_2bF16 VMfmaF32_16x16x4_4bF16 VMfmaF32_4x4x4_16bF16 VSmfmacF32_32x32x64Bf8Bf8
    VMfmaF32_32x32x8F16 VMfmaF32_16x16x16F16 VSmfmacF32_32x32x64Bf8Fp8 VSmfmacF32_32x32x64Fp8Bf8 VMfmaI32_32x32x4_2bI8
    VMfmaI32_16x16x4_4bI8 VMfmaI32_4x4x4_16bI8 VSmfmacF32_32x32x64Fp8Fp8 VMfmaF32_16x16x32F16 VMfmaF32_32x32x16F16
    VMfmaI32_32x32x16I8 VMfmaI32_16x16x32I8 VAccvgprReadB32 VAccvgprWriteB32 VSmfmacF32_16x16x64F16
    VSmfmacF32_32x32x32F16 VMfmaF32_32x32x4_2bBf16 VMfmaF32_16x16x4_4bBf16 VMfmaF32_4x4x4_16bBf16 VMfmaF32_32x32x8Bf16
    VMfmaF32_16x16x16Bf16 VSmfmacF32_16x16x32F16 VSmfmacF32_32x32x16F16 VSmfmacF32_16x16x32Bf16 VSmfmacF32_32x32x16Bf16
    VSmfmacI32_16x16x64I8 VSmfmacI32_32x32x32I8 VMfmaF64_16x16x4F64 VMfmaF64_4x4x4_4bF64 VMfmaF32_16x16x32Bf8Bf8
    VMfmaF32_16x16x32Bf8Fp8 VMfmaF32_16x16x32Fp8Bf8 VMfmaF32_16x16x32Fp8Fp8 VMfmaF32_32x32x16Bf8Bf8
    VMfmaF32_32x32x16Bf8Fp8 VMfmaF32_32x32x16Fp8Bf8 VMfmaF32_32x32x16Fp8Fp8 VSmfmacF32_16x16x64Bf8Bf8
    VSmfmacF32_16x16x64Bf8Fp8 VSmfmacF32_16x16x64Fp8Bf8 VSmfmacF32_16x16x64Fp8Fp8 VSmfmacF32_32x32x32Bf8Bf8
    VSmfmacF32_32x32x32Bf8Fp8 VSmfmacF32_32x32x32Fp8Bf8 VSmfmacF32_32x32x32Fp8Fp8
    // VOP3PX2, scaled
    VMfmaScaleF32_16x16x128F8f6f4 VMfmaScaleF32_32x32x64F8f6f4
    // DS
    DsAddU32 DsSubU32 DsRsubU32 DsIncU32 DsDecU32 DsMinI32 DsMaxI32 DsMinU32 DsMaxU32 DsAndB32 DsOrB32 DsXorB32
    DsMskorB32 DsWriteB32 DsWrite2B32 DsWrite2st64B32 DsCmpstB32 DsCmpstF32 DsMinF32 DsMaxF32 DsNop DsAddF32 DsPkAddF16
    DsPkAddBf16 DsWriteAddtidB32 DsWriteB8 DsWriteB16 DsAddRtnU32 DsSubRtnU32 DsRsubRtnU32 DsIncRtnU32 DsDecRtnU32
    DsMinRtnI32 DsMaxRtnI32 DsMinRtnU32 DsMaxRtnU32 DsAndRtnB32 DsOrRtnB32 DsXorRtnB32 DsMskorRtnB32 DsWrxchgRtnB32
    DsWrxchg2RtnB32 DsWrxchg2st64RtnB32 DsCmpstRtnB32 DsCmpstRtnF32 DsMinRtnF32 DsMaxRtnF32 DsWrapRtnB32 DsAddRtnF32
    DsReadB32 DsRead2B32 DsRead2st64B32 DsReadI8 DsReadU8 DsReadI16 DsReadU16 DsSwizzleB32 DsPermuteB32 DsBpermuteB32
    DsAddU64 DsSubU64 DsRsubU64 DsIncU64 DsDecU64 DsMinI64 DsMaxI64 DsMinU64 DsMaxU64 DsAndB64 DsOrB64 DsXorB64
    DsMskorB64 DsWriteB64 DsWrite2B64 DsWrite2st64B64 DsCmpstB64 DsCmpstF64 DsMinF64 DsMaxF64 DsWriteB8D16Hi
    DsWriteB16D16Hi DsReadU8D16 DsReadU8D16Hi DsReadI8D16 DsReadI8D16Hi DsReadU16D16 DsReadU16D16Hi DsAddF64 DsAddRtnU64
    DsSubRtnU64 DsRsubRtnU64 DsIncRtnU64 DsDecRtnU64 DsMinRtnI64 DsMaxRtnI64 DsMinRtnU64 DsMaxRtnU64 DsAndRtnB64
    DsOrRtnB64 DsXorRtnB64 DsMskorRtnB64 DsWrxchgRtnB64 DsWrxchg2RtnB64 DsWrxchg2st64RtnB64 DsCmpstRtnB64 DsCmpstRtnF64
    DsMinRtnF64 DsMaxRtnF64 DsReadB64 DsRead2B64 DsRead2st64B64 DsAddRtnF64 DsCondxchg32RtnB64 DsGwsSemaReleaseAll
    DsGwsInit DsGwsSemaV DsGwsSemaBr DsGwsSemaP DsGwsBarrier DsReadAddtidB32 DsPkAddRtnF16 DsPkAddRtnBf16 DsConsume
    DsAppend DsWriteB96 DsWriteB128 DsReadB64TrB4 DsReadB96TrB6 DsReadB64TrB8 DsReadB64TrB16 DsReadB96 DsReadB128
    // FLAT
    FlatLoadUbyte FlatLoadSbyte FlatLoadUshort FlatLoadSshort FlatLoadDword FlatLoadDwordx2 FlatLoadDwordx3
    FlatLoadDwordx4 FlatStoreByte FlatStoreByteD16Hi FlatStoreShort FlatStoreShortD16Hi FlatStoreDword FlatStoreDwordx2
    FlatStoreDwordx3 FlatStoreDwordx4 FlatLoadUbyteD16 FlatLoadUbyteD16Hi FlatLoadSbyteD16 FlatLoadSbyteD16Hi
    FlatLoadShortD16 FlatLoadShortD16Hi FlatAtomicSwap FlatAtomicCmpswap FlatAtomicAdd FlatAtomicSub FlatAtomicSmin
    FlatAtomicUmin FlatAtomicSmax FlatAtomicUmax FlatAtomicAnd FlatAtomicOr FlatAtomicXor FlatAtomicInc FlatAtomicDec
    FlatAtomicAddF32 FlatAtomicPkAddF16 FlatAtomicAddF64 FlatAtomicMinF64 FlatAtomicMaxF64 FlatAtomicPkAddBf16
    FlatAtomicSwapX2 FlatAtomicCmpswapX2 FlatAtomicAddX2 FlatAtomicSubX2 FlatAtomicSminX2 FlatAtomicUminX2
    FlatAtomicSmaxX2 FlatAtomicUmaxX2 FlatAtomicAndX2 FlatAtomicOrX2 FlatAtomicXorX2 FlatAtomicIncX2 FlatAtomicDecX2
    // GLOBAL
    GlobalLoadUbyte GlobalLoadSbyte GlobalLoadUshort GlobalLoadSshort GlobalLoadDword GlobalLoadDwordx2
    GlobalLoadDwordx3 GlobalLoadDwordx4 GlobalStoreByte GlobalStoreByteD16Hi GlobalStoreShort GlobalStoreShortD16Hi
    GlobalStoreDword GlobalStoreDwordx2 GlobalStoreDwordx3 GlobalStoreDwordx4 GlobalLoadUbyteD16 GlobalLoadUbyteD16Hi
    GlobalLoadSbyteD16 GlobalLoadSbyteD16Hi GlobalLoadShortD16 GlobalLoadShortD16Hi GlobalLoadLdsUbyte
    GlobalLoadLdsSbyte GlobalLoadLdsUshort GlobalLoadLdsSshort GlobalLoadLdsDword GlobalAtomicSwap GlobalAtomicCmpswap
    GlobalAtomicAdd GlobalAtomicSub GlobalAtomicSmin GlobalAtomicUmin GlobalAtomicSmax GlobalAtomicUmax GlobalAtomicAnd
    GlobalAtomicOr GlobalAtomicXor GlobalAtomicInc GlobalAtomicDec GlobalAtomicAddF32 GlobalAtomicPkAddF16
    GlobalAtomicAddF64 GlobalAtomicMinF64 GlobalAtomicMaxF64 GlobalAtomicPkAddBf16 GlobalAtomicSwapX2
    GlobalAtomicCmpswapX2 GlobalAtomicAddX2 GlobalAtomicSubX2 GlobalAtomicSminX2 GlobalAtomicUminX2 GlobalAtomicSmaxX2
    GlobalAtomicUmaxX2 GlobalAtomicAndX2 GlobalAtomicOrX2 GlobalAtomicXorX2 GlobalAtomicIncX2 GlobalAtomicDecX2
    GlobalLoadLdsDwordx4 GlobalLoadLdsDwordx3
    // SCRATCH
    ScratchLoadUbyte ScratchLoadSbyte ScratchLoadUshort ScratchLoadSshort ScratchLoadDword ScratchLoadDwordx2
    ScratchLoadDwordx3 ScratchLoadDwordx4 ScratchStoreByte ScratchStoreByteD16Hi ScratchStoreShort
    ScratchStoreShortD16Hi ScratchStoreDword ScratchStoreDwordx2 ScratchStoreDwordx3 ScratchStoreDwordx4
    ScratchLoadUbyteD16 ScratchLoadUbyteD16Hi ScratchLoadSbyteD16 ScratchLoadSbyteD16Hi ScratchLoadShortD16
    ScratchLoadShortD16Hi ScratchLoadLdsUbyte ScratchLoadLdsSbyte ScratchLoadLdsUshort ScratchLoadLdsSshort
    ScratchLoadLdsDword
    // MUBUF
    BufferLoadFormatX BufferLoadFormatXy BufferLoadFormatXyz BufferLoadFormatXyzw BufferStoreFormatX BufferStoreFormatXy
    BufferStoreFormatXyz BufferStoreFormatXyzw BufferLoadFormatD16X BufferLoadFormatD16Xy BufferLoadFormatD16Xyz
    BufferLoadFormatD16Xyzw BufferStoreFormatD16X BufferStoreFormatD16Xy BufferStoreFormatD16Xyz
    BufferStoreFormatD16Xyzw BufferLoadUbyte BufferLoadSbyte BufferLoadUshort BufferLoadSshort BufferLoadDword
    BufferLoadDwordx2 BufferLoadDwordx3 BufferLoadDwordx4 BufferStoreByte BufferStoreByteD16Hi BufferStoreShort
    BufferStoreShortD16Hi BufferStoreDword BufferStoreDwordx2 BufferStoreDwordx3 BufferStoreDwordx4 BufferLoadUbyteD16
    BufferLoadUbyteD16Hi BufferLoadSbyteD16 BufferLoadSbyteD16Hi BufferLoadShortD16 BufferLoadShortD16Hi
    BufferLoadFormatD16HiX BufferStoreFormatD16HiX BufferWbl2 BufferInv BufferAtomicSwap BufferAtomicCmpswap
    BufferAtomicAdd BufferAtomicSub BufferAtomicSmin BufferAtomicUmin BufferAtomicSmax BufferAtomicUmax BufferAtomicAnd
    BufferAtomicOr BufferAtomicXor BufferAtomicInc BufferAtomicDec BufferAtomicAddF32 BufferAtomicPkAddF16
    BufferAtomicAddF64 BufferAtomicMinF64 BufferAtomicMaxF64 BufferAtomicPkAddBf16 BufferAtomicSwapX2
    BufferAtomicCmpswapX2 BufferAtomicAddX2 BufferAtomicSubX2 BufferAtomicSminX2 BufferAtomicUminX2 BufferAtomicSmaxX2
    BufferAtomicUmaxX2 BufferAtomicAndX2 BufferAtomicOrX2 BufferAtomicXorX2 BufferAtomicIncX2 BufferAtomicDecX2
    // MTBUF
    TbufferLoadFormatX TbufferLoadFormatXy TbufferLoadFormatXyz TbufferLoadFormatXyzw TbufferStoreFormatX
    TbufferStoreFormatXy TbufferStoreFormatXyz TbufferStoreFormatXyzw TbufferLoadFormatD16X TbufferLoadFormatD16Xy
    TbufferLoadFormatD16Xyz TbufferLoadFormatD16Xyzw TbufferStoreFormatD16X TbufferStoreFormatD16Xy
    TbufferStoreFormatD16Xyz TbufferStoreFormatD16Xyzw
}
